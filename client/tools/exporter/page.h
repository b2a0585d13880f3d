/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * page: the exporter's page as generate_page.py joined it from page.html, page.css and page.js.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_EXPORTER_PAGE_H
#define GPUSHARE_CLIENT_TOOLS_EXPORTER_PAGE_H

/* Static text in UTF-8. */
extern const char page_html[];

/* The Content-Security-Policy with which the page is to be sent: it names the page's own script and
 * style by their hashes, so a browser runs nothing else. */
extern const char page_policy[];

#endif
