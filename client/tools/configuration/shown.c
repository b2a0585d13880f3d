/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/configuration/shown.h"

#include "client/tools/cell.h"
#include "client/tools/configuration/yaml.h"
#include "client/tools/table.h"
#include "common/messages.h"

/* A text of the server in a line of its own, which it can't end. */
static const char *clean(const json_t *text, char shown[4096])
{
    const char *value = json_string_value(text);
    snprintf(shown, 4096, "%s", value ? value : "-");
    table_clean(shown);
    return shown;
}

int shown_print(FILE *out, const json_t *answer)
{
    const json_t *totals = json_object_get(answer, "totals"), *total;
    char version[CELL_BYTES], shown[4096];
    fprintf(out, MESSAGE_TEXT(ctl_config_head), cell_text(answer, "server_version", version),
            clean(json_object_get(answer, "file"), shown));
    fputc('\n', out);
    for (size_t i = 0; (total = json_array_get(totals, i)); i++) {
        fprintf(out, MESSAGE_TEXT(ctl_config_total), clean(total, shown));
        fputc('\n', out);
    }
    return yaml_write(out, json_object_get(answer, "configuration"));
}
