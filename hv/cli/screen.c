// SPDX-License-Identifier: BSD-3-Clause
#include "hv/cli/screen.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "hv/cli/terminal.h"

/* xterm's control sequences, which every terminal of today has (ctlseqs, "Functions using CSI"). */
#define ENTER "\033[?1049h\033[?25l" /* the other screen, no cursor */
#define LEAVE "\033[?25h\033[?1049l"
#define HOME "\033[H"
#define CLEAR_LINE "\033[K"
#define CLEAR_BELOW "\033[J"

struct screen {
    bool drawn;
    bool begun; /* a plain block has been shown */
    bool keys;  /* standard input is the terminal */
    int signals;
    sigset_t before;
    struct termios mode;
};

static void put(const char *text)
{
    GString *string = g_string_new(text);

    terminal_write(string);
    g_string_free(string, TRUE);
}

static void enter(struct screen *screen)
{
    struct termios mode = screen->mode;

    if (!screen->drawn)
        return;
    put(ENTER);
    mode.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    if (screen->keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &mode);
}

static void leave(struct screen *screen)
{
    if (!screen->drawn)
        return;
    if (screen->keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &screen->mode);
    put(LEAVE);
}

struct screen *screen_open(bool drawn)
{
    static const int taken[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH, SIGPIPE};
    struct screen *screen = g_new0(struct screen, 1);
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < G_N_ELEMENTS(taken); i++)
        sigaddset(&set, taken[i]);
    sigprocmask(SIG_BLOCK, &set, &screen->before);
    screen->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    screen->drawn = drawn;
    screen->keys = drawn && !tcgetattr(STDIN_FILENO, &screen->mode);
    enter(screen);
    return screen;
}

void screen_close(struct screen *screen)
{
    leave(screen);
    close(screen->signals);
    sigprocmask(SIG_SETMASK, &screen->before, NULL);
    g_free(screen);
}

bool screen_show(struct screen *screen, const GString *frame)
{
    GString *text = g_string_new(screen->drawn ? HOME : screen->begun ? "\n" : "");

    g_string_append_len(text, frame->str, (gssize)frame->len);
    if (screen->drawn) {
        /* The last line has no newline: it would scroll. */
        if (text->len && text->str[text->len - 1] == '\n')
            g_string_truncate(text, text->len - 1);
        g_string_replace(text, "\n", CLEAR_LINE "\r\n", 0);
        g_string_append(text, CLEAR_LINE CLEAR_BELOW);
    }
    const bool written = terminal_write(text);

    screen->begun = true;
    g_string_free(text, TRUE);
    return written;
}

/* Ctrl-Z. */
static void stop(struct screen *screen)
{
    leave(screen);
    raise(SIGSTOP);
    enter(screen);
}

static bool take_signal(struct screen *screen)
{
    struct signalfd_siginfo info;

    if (read(screen->signals, &info, sizeof(info)) != sizeof(info))
        return true;
    if (info.ssi_signo == SIGTSTP)
        stop(screen);
    return info.ssi_signo == SIGTSTP || info.ssi_signo == SIGWINCH;
}

static bool take_key(struct screen *screen)
{
    char key = 'q';
    const ssize_t size = read(STDIN_FILENO, &key, 1);

    screen->keys = size > 0;
    return key != 'q' && key != 'Q';
}

bool screen_wait(struct screen *screen, int ms)
{
    struct pollfd ends[] = {{.fd = screen->signals, .events = POLLIN},
                            {.fd = screen->keys ? STDIN_FILENO : -1, .events = POLLIN}};

    poll(ends, 2, ms);
    return (!ends[0].revents || take_signal(screen)) && (!ends[1].revents || take_key(screen));
}
