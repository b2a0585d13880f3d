/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/config/rules.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/limits/limits.h"

/* Compares texts between two slashes. It goes back to the latest star only, so it takes at most
 * length times length steps, whatever text the client chose. */
static bool part_fits(const char *pattern, size_t pattern_length, const char *text, size_t length)
{
    size_t p = 0, t = 0, star = SIZE_MAX, resume = 0;
    while (t < length) {
        if (p < pattern_length && pattern[p] == '*') {
            star = p++;
            resume = t;
        } else if (p < pattern_length && pattern[p] == text[t]) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern_length && pattern[p] == '*')
        p++;
    return p == pattern_length;
}

bool config_rules_pattern_fits(const char *pattern, const char *text, bool whole)
{
    if (!whole && !strcmp(pattern, "/"))
        return true;
    for (;;) {
        size_t pattern_length = strcspn(pattern, "/"), length = strcspn(text, "/");
        if (!part_fits(pattern, pattern_length, text, length))
            return false;
        pattern += pattern_length;
        text += length;
        if (!*pattern)
            return !*text || !whole;
        if (!*text)
            return false;
        pattern++;
        text++;
    }
}

static bool in_ranges(const struct config_range *ranges, size_t count, uint32_t number)
{
    for (size_t i = 0; i < count; i++)
        if (number >= ranges[i].first && number <= ranges[i].last)
            return true;
    return false;
}

static bool any_in_ranges(const struct config_range *ranges, size_t count, const uint32_t *numbers,
                          size_t number_count)
{
    for (size_t i = 0; i < number_count; i++)
        if (in_ranges(ranges, count, numbers[i]))
            return true;
    return false;
}

static bool fits_one(char *const *patterns, size_t count, const char *text, bool whole)
{
    for (size_t i = 0; i < count; i++)
        if (config_rules_pattern_fits(patterns[i], text, whole))
            return true;
    return false;
}

/* Whether a client fits. unknown: the answer if the kernel did not report what the rule asks
 * for. */
static bool rule_fits(const struct config_match *match, const struct config_who *who, bool unknown)
{
    if (!who->identified)
        return unknown;
    if (match->uid_count && !in_ranges(match->uids, match->uid_count, who->uid))
        return false;
    if (match->gid_count &&
        (who->gids ? !any_in_ranges(match->gids, match->gid_count, who->gids, who->gid_count)
                   : !unknown))
        return false;
    if (match->cgroup_count &&
        (who->cgroup ? !fits_one(match->cgroups, match->cgroup_count, who->cgroup, false)
                     : !unknown))
        return false;
    return !match->name_count || fits_one(match->names, match->name_count, who->name, true);
}

/* A rule that may not be meant for the client can lower its limits and gives it no request. */
static void rule_apply(struct allowance *to, const struct allowance *by, bool certain)
{
    struct allowance limits = *by;
    if (!certain) {
        for (enum resource i = 0; i < RESOURCES; i++)
            if (allowance_has(&limits, i, ALLOWANCE_REQUEST))
                limits.of[i].request = 0;
    }
    allowance_tighten(to, &limits);
}

static bool rule_applies(const struct config_rule *rule, const struct config_who *who)
{
    return rule_fits(&rule->match, who, true) &&
           !(rule->excepts && rule_fits(&rule->except, who, false));
}

int config_rules_choose(const struct config *config, uint32_t device, const struct config_who *who,
                        struct allowance *limits)
{
    *limits = config->ceilings[device];
    for (size_t i = 0; i < config->rule_count; i++) {
        const struct config_rule *rule = &config->rules[i];
        if (!rule_applies(rule, who))
            continue;
        bool certain = rule_fits(&rule->match, who, false);
        rule_apply(limits, &rule->limits, certain);
        if (rule->profile != CONFIG_NO_PROFILE)
            rule_apply(limits, &config->profiles[rule->profile].limits, certain);
    }
    if (!*who->profile)
        return 0;
    const struct config_profile *profile = config_find_profile(config, who->profile);
    if (!profile)
        return -ENOENT;
    allowance_tighten(limits, &profile->limits);
    return 0;
}

/* Once each, whether several rules name it or the client asks for it too. */
static void add_profile(const struct config *config, uint32_t profile, bool *named, char *text,
                        size_t bytes)
{
    const size_t used = strlen(text);
    if (profile == CONFIG_NO_PROFILE || named[profile])
        return;
    named[profile] = true;
    snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", config->profiles[profile].name);
}

char *config_rules_profiles(const struct config *config, const struct config_who *who, char *text,
                            size_t bytes)
{
    bool named[CONFIG_PROFILES_MAX] = {false};
    text[0] = '\0';
    for (size_t i = 0; i < config->rule_count; i++)
        if (rule_applies(&config->rules[i], who))
            add_profile(config, config->rules[i].profile, named, text, bytes);
    const struct config_profile *asked =
        *who->profile ? config_find_profile(config, who->profile) : NULL;
    if (asked)
        add_profile(config, (uint32_t)(asked - config->profiles), named, text, bytes);
    return text;
}

bool config_rules_per_client(const struct config *config, const struct config_who *who)
{
    for (size_t i = 0; i < config->rule_count; i++) {
        const struct config_rule *rule = &config->rules[i];
        if (rule->per_client && rule_fits(&rule->match, who, false) &&
            !(rule->excepts && rule_fits(&rule->except, who, true)))
            return true;
    }
    return false;
}

size_t config_rules_pattern_covers(const char *pattern, const char *path)
{
    size_t length = 0;
    if (!config_rules_pattern_fits(pattern, path, false))
        return 0;
    if (!strcmp(pattern, "/"))
        return 1;
    for (; *pattern; pattern++)
        if (*pattern == '/')
            length += 1 + strcspn(path + length + 1, "/");
    return length;
}

size_t config_rules_cgroup_covers(const struct config_cgroup *entry, const char *path)
{
    size_t covered = 0;
    for (size_t i = 0; i < entry->pattern_count && !covered; i++)
        covered = config_rules_pattern_covers(entry->patterns[i], path);
    return covered;
}

void config_rules_cgroup(const struct config *config, const char *path, struct allowance *limits)
{
    *limits = allowance_none;
    for (size_t i = 0; i < config->cgroup_count; i++)
        if (!path || config_rules_cgroup_covers(&config->cgroups[i], path) == strlen(path))
            allowance_tighten(limits, &config->cgroups[i].limits);
}

bool config_rules_total_fits(const struct config_total *total, uint32_t id)
{
    return !total->id_count || id == CONFIG_ID_UNKNOWN ||
           in_ranges(total->ids, total->id_count, id);
}

bool config_rules_total(const struct config_total *totals, size_t count, uint32_t id,
                        struct allowance *limits)
{
    bool found = false;
    *limits = allowance_none;
    for (size_t i = 0; i < count; i++) {
        const struct config_total *total = &totals[i];
        if (!config_rules_total_fits(total, id))
            continue;
        allowance_tighten(limits, &total->limits);
        found = true;
    }
    return found;
}
