"""What the samples of starts come to, as tables of Markdown."""
import re
import statistics

FUNCTION = re.compile(r'\n((?:__kernel )?void) (\w+)\((.*?)\n}\n', re.DOTALL)


def counted(texts):
    result = {'files': 0, 'bytes': 0, 'kernels': 0, 'functions': 0, 'distinct': 0}
    bodies = set()
    for text in texts:
        result['files'] += 1
        result['bytes'] += len(text)
        for kind, name, body in FUNCTION.findall(text):
            result['kernels' if 'kernel' in kind else 'functions'] += 1
            if 'kernel' not in kind:
                bodies.add(body.replace(name, ''))
    return result | {'distinct': len(bodies)}


def seconds(samples, key='ms', spread=False):
    """Median, its number of samples where that is not five, and the least and the largest."""
    values = [s[key] * 1e-3 for s in samples or [] if key in s]
    if not values:
        return '-'
    text = f'{statistics.median(values):.2f}'
    if spread and len(values) > 1:
        text += f' [{min(values):.2f} .. {max(values):.2f}]'
    return text if len(values) == 5 else f'{text} ({len(values)})'


def table(head, lines):
    return '\n'.join(['| ' + ' | '.join(head) + ' |', '|---' * len(head) + '|', *('| ' + ' | '.join(line) + ' |' for line in lines)])


def side(entry, name, key='ms', spread=False):
    if name in entry.get('failed', {}) and not entry['samples'].get(name):
        return 'fails'
    return seconds(entry['samples'].get(name), key, spread)


def first(entry, key, form):
    samples = entry['samples'].get('settle')
    return form(samples[0][key]) if samples and key in samples[0] else '-'


def starts(rows, document, peers):
    lines = []
    for row in rows:
        entry = document['rows'].get(row.name)
        if not entry:
            continue
        lines.append([row.name, side(entry, 'cold', spread=True), f'{row.aim_s:g}', side(entry, 'cold', 'processor_ms'), side(entry, 'warm'),
                      side(entry, 'shipped'), f'{row.warm_aim_s:g}', first(entry, 'steady_after_ms', lambda v: f'{v * 1e-3:.1f}'),
                      first(entry, 'steady_ms', lambda v: f'{v:.2f}'), *(side(entry, p) for p in peers)])
    return table(['network', 'cold, s', 'aim', 'processor, s', 'warm, s', 'shipped, s', 'aim', 'steady after, s', 'steady, ms', *peers], lines)


def steps(rows, document, peers):
    lines = []
    for row in rows:
        entry = document['rows'].get(row.name)
        if not entry:
            continue
        lines.append([row.name, side(entry, 'cold', spread=True), f'{row.aim_s:g}', side(entry, 'cold', 'compile_ms'), side(entry, 'cold', 'processor_ms'),
                      side(entry, 'warm'), first(entry, 'steady_after_ms', lambda v: f'{v * 1e-3:.1f}'),
                      first(entry, 'steady_ms', lambda v: f'{v:.2f}'), *(side(entry, p) for p in peers)])
    return table(['first training step', 'cold with oclc, s', 'aim', 'oclc, s', 'processor, s', 'warm without oclc, s', 'steady after, s', 'steady, ms', *peers],
                 lines)


def programs(rows, document):
    """What a driver compiles for a start: its text, and seconds of the unoptimized build that answers first."""
    lines = []
    for row in rows:
        entry = document['rows'].get(row.name) or {'samples': {}}
        settled = entry['samples'].get('settle')
        if not settled or 'builds' not in settled[0]:
            continue
        s = settled[0]
        builds, texts = s['builds'], s['texts']
        largest = max(builds, key=lambda b: b['build_ms'])
        later = max(0.0, s['spans'].get('first run', 0) - s['spans'].get('second run', 0))
        lines.append([row.name, str(texts['files']), str(texts['kernels']), str(texts['functions']), str(texts['distinct']),
                      f"{texts['bytes'] * 1e-3:.0f}", str(len(builds)), f"{sum(b['build_ms'] for b in builds) * 1e-3:.2f}",
                      f"{largest['build_ms'] * 1e-3:.2f} ({largest['text_bytes'] * 1e-3:.0f} KB)", f'{later * 1e-3:.2f}', f"{s['processor_ms'] * 1e-3:.1f}"])
    return table(['row', 'programs', 'kernels', 'tile functions', 'distinct', 'text, KB', 'units', 'builds, s', 'the longest, s', 'kernels at the first run, s',
                  'processor to steady, s'], lines)


def markdown(rows, document, peers):
    kinds = lambda *wanted: [r for r in rows if r.kind in wanted]
    machine = ', '.join(f'{k} {v}' for k, v in document['machine'].items())
    parts = [f'{machine}. Medians of five, or of as many as stand in brackets.']
    if kinds('inference'):
        parts.append(starts(kinds('inference'), document, peers))
    if kinds('training', 'program'):
        parts.append(steps(kinds('training', 'program'), document, [p for p in peers if p.startswith('torch')]))
    parts.append(programs(rows, document))
    failed = [f'- {name}, {side}: {why}' for name, entry in document['rows'].items() for side, why in entry.get('failed', {}).items()]
    return '\n\n'.join(parts + (['Failed:\n' + '\n'.join(failed)] if failed else []))
