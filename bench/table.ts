/** The printed table: what was measured, what it must be, and whether it is. */

export interface Line {
  readonly what: string;
  readonly measured: string;
  readonly target: string;
  readonly ok: boolean;
}

const lines: Line[] = [];

export function section(title: string): void {
  console.log(`\n${title}`);
}

export function note(text: string): void {
  console.log(`    ${text}`);
}

function row(what: string, measured: string, target: string, ok: boolean): void {
  lines.push({ what, measured, target, ok });
  console.log(`  ${ok ? 'ok  ' : 'MISS'} ${what.padEnd(58)} ${measured.padStart(24)}   ${target}`);
}

export function atMost(what: string, value: number, limit: number, unit: string): void {
  row(what, `${value.toFixed(2)} ${unit}`, `at most ${limit} ${unit}`, value <= limit);
}

export function atLeast(what: string, value: number, limit: number, unit: string): void {
  row(
    what,
    `${Math.round(value).toLocaleString('en')} ${unit}`,
    `at least ${limit.toLocaleString('en')} ${unit}`,
    value >= limit,
  );
}

export function atLeastRatio(what: string, value: number, limit: number): void {
  row(what, `${value.toFixed(2)} x`, `at least ${limit} x`, value >= limit);
}

/** A rate that must reach a figure, or a share of what the machine itself can do in the same run. */
export function atLeastOrShare(what: string, value: number, limit: number, bare: number, share: number): void {
  const part = value / bare;
  const measured = `${Math.round(value).toLocaleString('en')}/s, ${(part * 100).toFixed(0)} %`;
  const target = `at least ${limit.toLocaleString('en')}/s, or ${share * 100} % of bare (${Math.round(bare).toLocaleString('en')}/s)`;
  row(what, measured, target, value >= limit || part >= share);
}

export function failures(): number {
  return lines.filter(({ ok }) => !ok).length;
}
