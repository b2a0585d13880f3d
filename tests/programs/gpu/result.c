/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/gpu/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[OUTCOMES] = {
    [OUTCOME_MEASURED] = "measured", [OUTCOME_HELD] = "held",       [OUTCOME_PASSED] = "passed",
    [OUTCOME_NOT_RUN] = "not run",   [OUTCOME_UNKNOWN] = "unknown", [OUTCOME_NOT_MET] = "not met",
    [OUTCOME_FAILED] = "failed",     [OUTCOME_FALSE] = "false",
};

const char *outcome_name(enum outcome outcome)
{
    return names[outcome];
}

static enum outcome outcome_of(const char *name)
{
    for (int i = 0; name && i < OUTCOMES; i++)
        if (!strcmp(names[i], name))
            return (enum outcome)i;
    return OUTCOMES;
}

void result_clear(struct result *result)
{
    json_decref(result->json);
    *result = (struct result){0};
}

void result_begin(struct result *result, const struct step *step)
{
    result_clear(result);
    result->step = step;
    result->json = json_pack("{s:s, s:s, s:s, s:s, s:f, s:i, s:n, s:[], s:[], s:{}, s:{}}", "step",
                             step->name, "title", step->title, "outcome", "unknown", "verdict", "",
                             "seconds", 0.0, "limit_seconds", (int)step->limit_s, "ended",
                             "assumptions", "checks", "measures", "facts");
    if (!result->json)
        abort();
}

/* ---- lines of a step ---------------------------------------------------------------- */

/* Cuts the first word off; NULL: there is none. */
static char *cut_word(char **rest)
{
    char *word = strsep(rest, " ");
    return word && *word ? word : NULL;
}

static bool take_assumption(struct result *result, const char *verdict, char *rest)
{
    const char *name = cut_word(&rest);
    if (!name)
        return false;
    json_array_append_new(
        json_object_get(result->json, "assumptions"),
        json_pack("{s:s, s:s, s:s}", "name", name, "verdict", verdict, "text", rest ? rest : ""));
    return true;
}

static bool take_check(struct result *result, enum outcome outcome, const char *rest)
{
    json_array_append_new(
        json_object_get(result->json, "checks"),
        json_pack("{s:s, s:s}", "outcome", names[outcome], "text", rest ? rest : ""));
    return true;
}

static bool take_measure(struct result *result, char *rest)
{
    const char *name = cut_word(&rest), *value = rest ? cut_word(&rest) : NULL;
    char *end;
    if (!name || !value)
        return false;
    double number = strtod(value, &end);
    if (*end)
        return false;
    json_object_set_new(json_object_get(result->json, "measures"), name,
                        json_pack("{s:f, s:s}", "value", number, "unit", rest ? rest : "-"));
    return true;
}

static bool take_fact(struct result *result, char *rest)
{
    const char *name = cut_word(&rest);
    if (!name)
        return false;
    json_object_set_new(json_object_get(result->json, "facts"), name,
                        json_string(rest ? rest : ""));
    return true;
}

bool result_take_line(struct result *result, const char *line)
{
    char copy[1200];
    if (*line != '@' || strlen(line) >= sizeof copy)
        return false;
    snprintf(copy, sizeof copy, "%s", line + 1);
    /* jansson takes UTF-8 alone. */
    for (char *c = copy; *c; c++)
        if ((unsigned char)*c < 32 || (unsigned char)*c > 126)
            *c = '?';
    char *rest = copy;
    const char *kind = cut_word(&rest);
    if (!kind)
        return false;
    if (!strcmp(kind, "held") || !strcmp(kind, "false") || !strcmp(kind, "unknown"))
        return take_assumption(result, kind, rest);
    if (!strcmp(kind, "passed"))
        return take_check(result, OUTCOME_PASSED, rest);
    if (!strcmp(kind, "failed"))
        return take_check(result, OUTCOME_FAILED, rest);
    if (!strcmp(kind, "notmet"))
        return take_check(result, OUTCOME_NOT_MET, rest);
    if (!strcmp(kind, "notrun"))
        return take_check(result, OUTCOME_NOT_RUN, rest);
    if (!strcmp(kind, "note"))
        return take_check(result, OUTCOME_MEASURED, rest);
    if (!strcmp(kind, "cannot"))
        return take_check(result, OUTCOME_UNKNOWN, rest);
    if (!strcmp(kind, "measure"))
        return take_measure(result, rest);
    if (!strcmp(kind, "fact"))
        return take_fact(result, rest);
    if (!strcmp(kind, "call"))
        snprintf(result->call, sizeof result->call, "%s", rest ? rest : "");
    return true;
}

/* A member of a row that this file has made. */
static const char *text_of(const json_t *row, const char *member)
{
    const char *text = json_string_value(json_object_get(row, member));
    return text ? text : "";
}

/* ---- the end ---------------------------------------------------------------------------- */
static bool was_judged(const struct result *result, const char *assumption)
{
    size_t i;
    json_t *row;
    json_array_foreach(
        json_object_get(result->json, "assumptions"), i,
        row) if (!strcmp(json_string_value(json_object_get(row, "name")), assumption)) return true;
    return false;
}

/* The step's own reason why it could not answer. */
static const char *find_reason(const struct result *result)
{
    size_t i;
    json_t *row;
    json_array_foreach(
        json_object_get(result->json, "checks"), i,
        row) if (outcome_of(json_string_value(json_object_get(row, "outcome"))) ==
                 OUTCOME_UNKNOWN) return json_string_value(json_object_get(row, "text"));
    return NULL;
}

static void judge_rest(struct result *result, const char *ended)
{
    const char *reason = find_reason(result);
    for (size_t i = 0; i < step_assumption_count; i++) {
        const struct step_assumption *assumption = &step_assumptions[i];
        char text[400];
        if (strcmp(assumption->step, result->step->name) != 0 ||
            was_judged(result, assumption->name))
            continue;
        snprintf(text, sizeof text, "%s %s", assumption->name,
                 reason  ? reason
                 : ended ? ended
                         : "the step said nothing of it");
        take_assumption(result, "unknown", text);
    }
}

static void keep_worst(enum outcome *worst, const char **text, enum outcome outcome,
                       const char *said)
{
    if (*text && outcome <= *worst)
        return;
    *worst = outcome;
    *text = said;
}

static void keep_worst_of(const struct result *result, const char *list, const char *member,
                          enum outcome *worst, const char **text)
{
    const json_t *rows = json_object_get(result->json, list);
    for (size_t i = 0; i < json_array_size(rows); i++)
        keep_worst(worst, text, outcome_of(text_of(json_array_get(rows, i), member)),
                   text_of(json_array_get(rows, i), "text"));
}

void result_finish(struct result *result, double seconds, const char *ended)
{
    char how[200], verdict[1400];
    const char *text = NULL;
    enum outcome worst = OUTCOME_MEASURED;
    if (ended && result->call[0])
        snprintf(how, sizeof how, "%s, in or after %s", ended, result->call);
    else
        snprintf(how, sizeof how, "%s", ended ? ended : "");
    judge_rest(result, ended ? how : NULL);
    /* A step that died has said less than it would have. */
    if (ended && !find_reason(result))
        take_check(result, result->step->check ? OUTCOME_FAILED : OUTCOME_UNKNOWN, how);
    keep_worst_of(result, "assumptions", "verdict", &worst, &text);
    keep_worst_of(result, "checks", "outcome", &worst, &text);
    if (!text) {
        worst = result->step->check ? OUTCOME_FAILED : OUTCOME_UNKNOWN;
        text = "it said nothing";
    }
    if (worst == OUTCOME_UNKNOWN && result->step->check)
        worst = OUTCOME_FAILED;
    size_t assumptions = json_array_size(json_object_get(result->json, "assumptions"));
    if (worst == OUTCOME_HELD && assumptions > 1)
        snprintf(verdict, sizeof verdict, "all %zu: %s", assumptions, text);
    else
        snprintf(verdict, sizeof verdict, "%s", text);
    result->outcome = worst;
    json_object_set_new(result->json, "outcome", json_string(names[worst]));
    json_object_set_new(result->json, "verdict", json_string(verdict));
    json_object_set_new(result->json, "seconds", json_real(seconds));
    if (ended)
        json_object_set_new(result->json, "ended", json_string(how));
}

void result_cut_short(struct result *result, const char *how)
{
    char verdict[300];
    const json_t *checks = json_object_get(result->json, "checks");
    bool said = false;
    for (size_t i = 0; i < json_array_size(checks); i++) {
        enum outcome outcome = outcome_of(text_of(json_array_get(checks, i), "outcome"));
        said = said || outcome == OUTCOME_NOT_MET ||
               (outcome == OUTCOME_FAILED &&
                strncmp(text_of(json_array_get(checks, i), "text"), how, strlen(how)) != 0);
    }
    if (result->outcome == OUTCOME_FALSE || said)
        return;
    const char *ended = json_string_value(json_object_get(result->json, "ended"));
    snprintf(verdict, sizeof verdict, "cut short before its own limit: %s", ended ? ended : how);
    result->outcome = OUTCOME_NOT_RUN;
    json_object_set_new(result->json, "outcome", json_string(names[OUTCOME_NOT_RUN]));
    json_object_set_new(result->json, "verdict", json_string(verdict));
}

void result_not_run(struct result *result, const struct step *step, const char *why)
{
    result_begin(result, step);
    result->outcome = OUTCOME_NOT_RUN;
    json_object_set_new(result->json, "outcome", json_string(names[OUTCOME_NOT_RUN]));
    json_object_set_new(result->json, "verdict", json_string(why));
}

bool result_load(struct result *result, const struct step *step, json_t *json)
{
    const char *name = json_string_value(json_object_get(json, "step"));
    enum outcome outcome = outcome_of(json_string_value(json_object_get(json, "outcome")));
    if (!name || strcmp(name, step->name) != 0 || outcome == OUTCOMES ||
        !json_is_string(json_object_get(json, "verdict")))
        return false;
    result_clear(result);
    *result = (struct result){.step = step, .json = json_incref(json), .outcome = outcome};
    return true;
}

const char *result_verdict(const struct result *result)
{
    const char *verdict = json_string_value(json_object_get(result->json, "verdict"));
    return verdict ? verdict : "";
}

int result_exit_status(const unsigned counts[OUTCOMES])
{
    if (counts[OUTCOME_FALSE] || counts[OUTCOME_FAILED] || counts[OUTCOME_NOT_MET])
        return 1;
    if (counts[OUTCOME_UNKNOWN])
        return 3;
    return counts[OUTCOME_NOT_RUN] ? 4 : 0;
}
