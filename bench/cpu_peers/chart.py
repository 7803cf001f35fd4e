"""A bar chart of the result of compare.py: a group of bars a network, each a system's speed relative to oclc's."""
from xml.sax.saxutils import escape

COLOURS = ['#8172b3', '#dd8452', '#55a868', '#c44e52', '#937860', '#64b5cd']
BAR, GAP, LEFT, SCALE = 14, 16, 190, 320


def bars(result):
    rows = result['models']
    peers = [p for p in rows[0]['ms'] if p != 'oclc']
    group = len(peers) * BAR + GAP
    height, width = 70 + len(rows) * group, LEFT + int(1.6 * SCALE) + 70
    text = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">',
            '<rect width="100%" height="100%" fill="white"/>',
            f'<text x="{LEFT}" y="18" font-size="13">Speed relative to oclc (1 = as fast; shorter bars are slower), '
            f'{escape(result["machine"]["cpu"])}, {result["machine"]["cores"]} cores</text>']
    for i, peer in enumerate(peers):
        x = LEFT + i * 140
        text.append(f'<rect x="{x}" y="28" width="10" height="10" fill="{COLOURS[i % len(COLOURS)]}"/>'
                    f'<text x="{x + 14}" y="37">{escape(peer)}</text>')
    for r, row in enumerate(rows):
        y = 55 + r * group
        label = ' '.join([row['model']] + [f'{k}={v}' for k, v in row['dims'].items()])
        text.append(f'<text x="{LEFT - 8}" y="{y + len(peers) * BAR / 2 + 4}" text-anchor="end">{escape(label)}</text>')
        for i, peer in enumerate(peers):
            speed = row['ms']['oclc'] / row['ms'][peer]
            length = min(speed, 1.6) * SCALE
            text.append(f'<rect x="{LEFT}" y="{y + i * BAR}" width="{length:.1f}" height="{BAR - 2}" '
                        f'fill="{COLOURS[i % len(COLOURS)]}"/>'
                        f'<text x="{LEFT + length + 4:.1f}" y="{y + i * BAR + 10}">{speed:.2f}</text>')
    text.append(f'<line x1="{LEFT + SCALE}" x2="{LEFT + SCALE}" y1="46" y2="{height - 12}" stroke="black" '
                'stroke-dasharray="4 3"/></svg>')
    return '\n'.join(text) + '\n'
