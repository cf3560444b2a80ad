// The printed table: name, measured value, target, and whether the target is met.

interface Line {
  readonly name: string;
  readonly measured: string;
  readonly target: string;
  readonly ok: boolean;
}

const lines: Line[] = [];

/** Prints the title of a section. */
export function section(title: string): void {
  console.log(`\n${title}`);
}

/** Prints a note. */
export function note(text: string): void {
  console.log(`    ${text}`);
}

function row(name: string, measured: string, target: string, ok: boolean): void {
  lines.push({ name, measured, target, ok });
  console.log(`  ${ok ? 'ok  ' : 'MISS'} ${name.padEnd(58)} ${measured.padStart(24)}   ${target}`);
}

/** Prints a value that must not exceed a limit. */
export function atMost(name: string, value: number, limit: number, unit: string): void {
  row(name, `${value.toFixed(2)} ${unit}`, `at most ${limit} ${unit}`, value <= limit);
}

/** Prints a value that must reach a limit. */
export function atLeast(name: string, value: number, limit: number, unit: string): void {
  row(
    name,
    `${Math.round(value).toLocaleString('en')} ${unit}`,
    `at least ${limit.toLocaleString('en')} ${unit}`,
    value >= limit,
  );
}

/** Prints a ratio that must reach a limit. */
export function atLeastRatio(name: string, value: number, limit: number): void {
  row(name, `${value.toFixed(2)} x`, `at least ${limit} x`, value >= limit);
}

/** Prints a rate that must reach a limit, or a share of the bare rate of the machine in the same run. */
export function atLeastOrShare(name: string, value: number, limit: number, bare: number, share: number): void {
  const part = value / bare;
  const measured = `${Math.round(value).toLocaleString('en')}/s, ${(part * 100).toFixed(0)} %`;
  const target = `at least ${limit.toLocaleString('en')}/s, or ${share * 100} % of bare (${Math.round(bare).toLocaleString('en')}/s)`;
  row(name, measured, target, value >= limit || part >= share);
}

/** Returns the number of missed targets. */
export function failures(): number {
  return lines.filter(({ ok }) => !ok).length;
}
