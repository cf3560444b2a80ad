/**
 * The syntax of cron expressions: five fields, or six with seconds first. It is stricter than that of the library which
 * computes the times: croner reads `1jan` as November, `1L5` as "the 15th and the last day" and a text with a colon as
 * a date.
 */

interface CronField {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** How many different values there are; a step is at most this. */
  readonly count: number;
  /** The names of the values, from `min` on. */
  readonly names: readonly string[];
  /** An example of what only this field accepts, and its syntax. */
  readonly special?: { readonly example: string; readonly pattern: RegExp };
}

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
const DAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];
const MAX_CRON_CHARS = 200;
const ITEM = /^(?:\*|([0-9A-Z]+)(?:-([0-9A-Z]+))?)(?:\/(\d{1,2}))?$/i;

const FIELDS: readonly CronField[] = [
  { name: 'second', min: 0, max: 59, count: 60, names: [] },
  { name: 'minute', min: 0, max: 59, count: 60, names: [] },
  { name: 'hour', min: 0, max: 23, count: 24, names: [] },
  { name: 'day of month', min: 1, max: 31, count: 31, names: [], special: { example: 'L', pattern: /^L$/i } },
  { name: 'month', min: 1, max: 12, count: 12, names: MONTHS },
  {
    name: 'day of week',
    min: 0,
    max: 7,
    count: 7,
    names: DAYS,
    special: { example: 'MON#1 or FRIL', pattern: /^(?:[0-7]|SUN|MON|TUE|WED|THU|FRI|SAT)(?:#[1-5]|L)$/i },
  },
];

/** Returns what is wrong with the syntax of a cron expression; undefined if nothing is. */
export function findCronProblem(cron: unknown): string | undefined {
  if (typeof cron !== 'string' || cron.length > MAX_CRON_CHARS)
    return `must be a text of at most ${MAX_CRON_CHARS} characters`;
  const texts = cron.split(/[ \t]+/).filter((text) => text !== '');
  if (texts.length !== 5 && texts.length !== 6)
    return (
      `must have five fields (minute, hour, day of month, month, day of week), or six with seconds first; ` +
      `it has ${texts.length}`
    );
  const fields = FIELDS.slice(FIELDS.length - texts.length);
  const problems = texts.map((text, index) => findFieldProblem(fields[index] as CronField, text));
  return problems.find((problem) => problem !== undefined);
}

function findFieldProblem(field: CronField, text: string): string | undefined {
  // guard: cron-field-syntax
  if (text.split(',').every((item) => isItem(field, item))) return undefined;
  const { name, min, max, count, names, special } = field;
  const named = names.length === 0 ? '' : ` or ${names[0]}-${names.at(-1)}`;
  const also = special === undefined ? '' : `, or ${special.example}`;
  return (
    `the ${name} ${JSON.stringify(text.slice(0, 40))} is invalid: it is *, a number from ${min} to ${max}${named}, ` +
    `a range such as 1-5, a step from 1 to ${count} such as */5 or 1-5/2${also}, or a list of these with commas`
  );
}

function isItem(field: CronField, item: string): boolean {
  if (field.special?.pattern.test(item)) return true;
  const match = ITEM.exec(item);
  if (match === null) return false;
  const [, first, last, step] = match;
  const isRange = first === undefined || last !== undefined;
  if (step !== undefined && (!isRange || Number(step) < 1 || Number(step) > field.count)) return false;
  if (first === undefined) return true;
  const low = numberOf(field, first);
  const high = last === undefined ? low : rangeEndOf(field, last);
  return low !== undefined && high !== undefined && low <= high;
}

/** The number of a value or of its name; undefined if the field has no such value. */
function numberOf({ min, max, names }: CronField, text: string): number | undefined {
  const index = names.indexOf(text.toUpperCase());
  if (index >= 0) return min + index;
  const value = /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN;
  return value >= min && value <= max ? value : undefined;
}

/** The same for the end of a range, where Sunday is the last day of the week: `FRI-SUN`. */
function rangeEndOf(field: CronField, text: string): number | undefined {
  return field.names === DAYS && text.toUpperCase() === 'SUN' ? field.max : numberOf(field, text);
}
