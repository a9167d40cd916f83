# SPDX-License-Identifier: BSD-3-Clause
"""The bench's plot: a row for each workload, a dot for each mode."""

from html import escape

COLOURS = ("#9aa0a6", "#1a6fb5", "#d9541e")
WIDTH, LEFT, RIGHT, TOP, ROW = 760, 130, 30, 92, 30
STEP = 0.05


def dots(rows, summary, modes, limit):
    """SVG text. modes: (name, title), drawn in this order; limit: the worst that a workload may be."""
    workloads = list(dict.fromkeys(row["workload"] for row in rows))
    ratio = {(row["workload"], row["mode"]): row["ratio"] for row in rows}
    ratio |= {("geometric mean", s["mode"]): s["geometric_mean"] for s in summary}
    lines = workloads + ["geometric mean"]
    shown = [ratio[line, name] for line in lines for name, _ in modes]
    scale = Scale(min(shown + [1]), max(shown + [limit]))
    bottom = TOP + ROW * len(lines)
    parts = [text(LEFT, 26, "Guest time while counting, against the same QEMU not counting", size=15, weight="bold")]
    parts += legend(modes)
    parts += axis(scale, bottom, limit)
    for i, line in enumerate(lines):
        parts += draw_row(i, line, [ratio[line, name] for name, _ in modes], scale)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{bottom + 52}" '
            f'viewBox="0 0 {WIDTH} {bottom + 52}" font-family="sans-serif">\n'
            f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n")


class Scale:
    """From a ratio to a place on the axis, which ends at whole steps."""

    def __init__(self, low, high):
        self.first, self.last = int(low / STEP - 0.01), int(high / STEP + 0.99)

    def ticks(self):
        return [i * STEP for i in range(self.first, self.last + 1)]

    def x(self, ratio):
        return LEFT + (ratio / STEP - self.first) / (self.last - self.first) * (WIDTH - LEFT - RIGHT)


def text(x, y, words, size=12, anchor="start", weight="normal", fill="#202124"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" '
            f'fill="{fill}">{escape(words)}</text>')


def line(x1, y1, x2, y2, colour, width=1, dash=""):
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
            f'stroke-width="{width}"{dashed}/>')


def dot(x, y, colour):
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5.5" fill="{colour}" stroke="white" stroke-width="1.2"/>'


def legend(modes):
    parts, x = [], LEFT + 6
    for (_, title), colour in zip(modes, COLOURS):
        parts += [dot(x, 47, colour), text(x + 11, 51, title)]
        x += 34 + 6.4 * len(title)
    return parts


def axis(scale, bottom, limit):
    parts = []
    for tick in scale.ticks():
        one = abs(tick - 1) < STEP / 2
        parts.append(line(scale.x(tick), TOP - 8, scale.x(tick), bottom, "#5f6368" if one else "#e3e5e8", 1.5 if one else 1))
        parts.append(text(scale.x(tick), bottom + 18, f"{tick:.2f}", anchor="middle", fill="#5f6368"))
    parts.append(line(scale.x(limit), TOP - 8, scale.x(limit), bottom, "#c5221f", 1.2, "5 4"))
    parts.append(text(scale.x(limit), TOP - 14, f"limit {limit:.2f}", size=11, anchor="middle", fill="#c5221f"))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, bottom + 40, "ratio of user time (1.00: counting costs nothing)",
                      anchor="middle", fill="#5f6368"))
    return parts


def draw_row(i, name, ratios, scale):
    y = TOP + ROW * i + ROW / 2
    mean = name == "geometric mean"
    parts = [line(LEFT, y - ROW / 2, WIDTH - RIGHT, y - ROW / 2, "#5f6368")] if mean else []
    parts.append(text(LEFT - 12, y + 4, name, anchor="end", weight="bold" if mean else "normal"))
    parts.append(line(scale.x(min(ratios)), y, scale.x(max(ratios)), y, "#c4c7cc", 2))
    return parts + [dot(scale.x(ratio), y, colour) for ratio, colour in zip(ratios, COLOURS)]
