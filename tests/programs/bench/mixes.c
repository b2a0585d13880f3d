/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/bench/mixes.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/bench/quiet.h"

enum { AT_ONCE_MAX = 8 };

/* A thousandth of the time is a tenth of a point; so much of it may others take from a scene. */
#define NOISE_MAX 0.001
/* So much of the CPUs, too, and a scene is not what it says. */
#define OTHERS_MAX 0.1

static struct mixes_scene *shared_scenes(unsigned count)
{
    void *memory = mmap(NULL, count * sizeof(struct mixes_scene), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        bench_die("out of memory");
    return memory;
}

_Noreturn static void play_in_child(mixes_play *play, const struct server *server,
                                    struct mixes_scene *scene, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    play(server, scene);
    exit(0);
}

/* The watcher is a thread, so it begins after the last fork. The scenes are below this process, and
 * no noise to each other. */
static void play_at_once(struct mixes_scene **scenes, unsigned count, mixes_play *play)
{
    const char *env[] = {"SOFTGPU_SMS=16", NULL};
    struct server *servers[AT_ONCE_MAX];
    pid_t pids[AT_ONCE_MAX], parent = getpid();
    int status;
    for (unsigned i = 0; i < count; i++)
        servers[i] = bench_server_soft(env);
    fflush(NULL); /* otherwise the children would write the same text again */
    for (unsigned i = 0; i < count; i++) {
        pids[i] = fork();
        if (pids[i] < 0)
            bench_die("no process for a scene");
        if (!pids[i])
            play_in_child(play, servers[i], scenes[i], parent);
    }
    quiet_start();
    for (unsigned i = 0; i < count; i++)
        if (waitpid(pids[i], &status, 0) != pids[i] || status)
            bench_die("scene %u (seed %llu) could not be played", scenes[i]->number,
                      (unsigned long long)scenes[i]->seed);
    quiet_stop();
    for (unsigned i = 0; i < count; i++)
        bench_server_stop(servers[i]);
}

static bool was_disturbed(const struct mixes_scene *scene)
{
    double span = scene->to - scene->from;
    return quiet_noise(scene->from, scene->to) > NOISE_MAX * span ||
           quiet_others(scene->from, scene->to) > OTHERS_MAX;
}

/* Plays the scenes of the list. Returns how many were disturbed: they are the list then. */
static unsigned play_list(struct mixes_scene **list, unsigned count, unsigned at_once,
                          mixes_play *play)
{
    unsigned left = 0;
    for (unsigned first = 0; first < count; first += at_once) {
        unsigned some = count - first < at_once ? count - first : at_once;
        play_at_once(&list[first], some, play);
        for (unsigned i = first; i < first + some; i++)
            if (was_disturbed(list[i]))
                list[left++] = list[i];
    }
    return left;
}

void mixes_run(struct bench_result *result, mixes_play *play, unsigned count, unsigned at_once)
{
    const unsigned mapped = count;
    struct mixes_scene *scenes = shared_scenes(mapped), *list[MIXES_MAX];
    const struct mixes_scene *worst = NULL;
    bool counts[MIXES_MAX];
    const unsigned first = bench_scene < 0 ? 0 : (unsigned)bench_scene;
    at_once = at_once < AT_ONCE_MAX ? at_once : AT_ONCE_MAX;
    if (first >= count)
        bench_die("there is no scene %u: the row has %u", first, count);
    count = bench_scene < 0 ? count : 1;
    for (unsigned i = 0; i < count; i++) {
        scenes[i] = (struct mixes_scene){.number = first + i, .seed = bench_seed + first + i};
        list[i] = &scenes[i];
        counts[i] = true;
    }
    unsigned again = play_list(list, count, at_once, play), lost = again;
    if (again && again <= count / 4)
        lost = play_list(list, again, at_once, play);
    for (unsigned i = 0; i < lost; i++)
        counts[list[i] - scenes] = false;
    double most = scenes[0].points;
    for (unsigned i = 0; i < count; i++) {
        most = scenes[i].points > most ? scenes[i].points : most;
        if (counts[i] && (!worst || scenes[i].points > worst->points))
            worst = &scenes[i];
    }
    if (lost * 10 > count || !worst)
        bench_die(
            "the machine is too busy: %u of %u scenes were disturbed; the worst of all is %.2f "
            "beyond",
            lost, count, most);
    unsigned windows = 0, compared = 0;
    for (unsigned i = 0; i < count; i++) {
        windows += scenes[i].windows;
        compared += scenes[i].compared;
    }
    if (!windows || compared * 2 < windows)
        bench_die("only %u of %u windows could be compared with the promise", compared, windows);
    result->value = worst->points;
    snprintf(result->note, sizeof result->note,
             "%u scenes, %u played again, %u disturbed then, worst of all %.4g; %u of %u windows "
             "compared; worst: scene %u, seed %llu, %s",
             count, again, lost, most, compared, windows, worst->number,
             (unsigned long long)worst->seed, worst->words);
    munmap(scenes, mapped * sizeof *scenes);
}
