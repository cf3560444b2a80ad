// Writes a document in random TOML forms, and records where the key of each member is written.

import type { TextPosition } from '../../src/adapters/files/document-read-error.js';

type Table = { readonly [key: string]: unknown };

/** A key of a header: its name, and the pointer of the member that it names. */
interface HeaderKey {
  readonly name: string;
  readonly pointer: string;
}

const isTable = (value: unknown): value is Table =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const pointerTo = (parent: string, name: string): string =>
  `${parent}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;

class TomlWriter {
  text = '';
  readonly positions = new Map<string, TextPosition>();
  private seed: number;
  private readonly lineEnd: string;

  constructor(seed: number) {
    this.seed = seed;
    this.lineEnd = this.chance() ? '\n' : '\r\n';
    if (this.chance()) this.text = '\ufeff';
    this.positions.set('', { line: 1, column: 1 });
  }

  writeTable(table: Table, pointer: string, header: readonly HeaderKey[]): void {
    const withHeaders: [string, unknown][] = [];
    for (const [name, value] of Object.entries(table)) {
      const isTableArray = Array.isArray(value) && value.length > 0 && value.every(isTable);
      if ((isTable(value) || isTableArray) && this.chance()) withHeaders.push([name, value]);
      else this.writeMember(name, value, pointer);
    }
    for (const [name, value] of withHeaders) {
      const member = pointerTo(pointer, name);
      const keys = [...header, { name, pointer: member }];
      if (!Array.isArray(value)) {
        this.writeHeader(keys, '[', ']', member);
        this.writeTable(value as Table, member, keys);
        continue;
      }
      for (const [index, element] of value.entries()) {
        this.writeHeader(keys, '[[', ']]', `${member}/${index}`);
        this.writeTable(element as Table, `${member}/${index}`, keys);
      }
    }
  }

  private writeHeader(keys: readonly HeaderKey[], open: string, close: string, declared: string): void {
    this.writeNoise();
    this.text += open;
    for (const [index, { name, pointer }] of keys.entries()) {
      if (index > 0) this.text += this.pick(['.', ' . ', '\t.']);
      this.mark(pointer);
      if (index === keys.length - 1) this.mark(declared);
      this.writeKey(name);
    }
    this.text += `${this.pick(['', ' '])}${close}${this.pick(['', ' # [x]'])}${this.lineEnd}`;
  }

  private writeMember(name: string, value: unknown, pointer: string): void {
    this.writeNoise();
    this.writeLeaves([{ name, pointer: pointerTo(pointer, name) }], value, () => {
      this.text += `${this.pick(['', ' # x = 1', '\t#"'])}${this.lineEnd}`;
    });
  }

  /** Writes a member with its key, or the members of a table with dotted keys. */
  private writeLeaves(keys: readonly HeaderKey[], value: unknown, end: () => void): void {
    const last = keys.at(-1)?.pointer ?? '';
    if (isTable(value) && Object.keys(value).length > 0 && this.chance()) {
      for (const [name, member] of Object.entries(value))
        this.writeLeaves([...keys, { name, pointer: pointerTo(last, name) }], member, end);
      return;
    }
    for (const [index, { name, pointer }] of keys.entries()) {
      if (index > 0) this.text += this.pick(['.', ' . ']);
      this.mark(pointer);
      this.writeKey(name);
    }
    this.text += this.pick(['=', ' = ', '\t=\t']);
    this.writeValue(value, last);
    end();
  }

  private writeValue(value: unknown, pointer: string): void {
    if (typeof value === 'string') this.text += this.stringOf(value);
    else if (Array.isArray(value)) this.writeArray(value, pointer);
    else if (isTable(value)) this.writeInlineTable(value, pointer);
    else this.text += String(value);
  }

  private writeArray(list: readonly unknown[], pointer: string): void {
    this.text += '[';
    for (const [index, element] of list.entries()) {
      this.text += this.pick(['', ' ', `${this.lineEnd}  `, ` # ], x = 1${this.lineEnd}`]);
      this.mark(`${pointer}/${index}`);
      this.writeValue(element, `${pointer}/${index}`);
      if (index < list.length - 1 || this.chance()) this.text += this.pick([',', ' ,', `${this.lineEnd},`]);
    }
    this.text += this.pick([']', ' ]', `${this.lineEnd}]`]);
  }

  private writeInlineTable(table: Table, pointer: string): void {
    this.text += '{';
    for (const [name, value] of Object.entries(table)) {
      this.text += this.pick(['', ' ']);
      this.writeLeaves([{ name, pointer: pointerTo(pointer, name) }], value, () => {
        this.text += ', ';
      });
    }
    this.text = `${this.text.replace(/, $/, this.pick(['', ' ']))}}`;
  }

  private writeNoise(): void {
    this.text += this.pick(['', '', this.lineEnd, `# a = 1${this.lineEnd}`, `  #[[a]]${this.lineEnd}`, '  ', '\t']);
  }

  private writeKey(name: string): void {
    const forms = [this.quoted(name)];
    if (/^[A-Za-z0-9_-]+$/.test(name)) forms.push(name, name, name);
    if (!/['\p{Cc}]/u.test(name)) forms.push(`'${name}'`);
    this.text += this.pick(forms);
  }

  private stringOf(value: string): string {
    const forms = [this.quoted(value)];
    const hasControl = /[^\P{Cc}\t\n]/u.test(value);
    if (!/['\p{Cc}]/u.test(value)) forms.push(`'${value}'`);
    if (!value.includes("'''") && !hasControl && !value.endsWith("'")) {
      forms.push(`'''\n${value}'''`);
    }
    const escaped = value.replace(/\\|"|[^\P{Cc}\t\n]/gu, (character) => this.escaped(character));
    forms.push(`"""\n${escaped}"""`);
    return this.pick(forms);
  }

  private quoted(value: string): string {
    const escapes = this.chance() ? /[\\"\p{Cc}]/gu : /[\\"\p{Cc}a-e]/gu;
    return `"${value.replace(escapes, (character) => this.escaped(character))}"`;
  }

  private escaped(character: string): string {
    const code = character.charCodeAt(0).toString(16);
    const plain = character === '\\' || character === '"' ? [`\\${character}`] : [];
    return this.pick([...plain, `\\u${code.padStart(4, '0')}`, `\\U${code.padStart(8, '0')}`]);
  }

  /** Records the current end of the text as the position of a member, unless it has one. */
  private mark(pointer: string): void {
    if (this.positions.has(pointer)) return;
    const lines = this.text.replace('\ufeff', '').split('\n');
    this.positions.set(pointer, { line: lines.length, column: (lines.at(-1) ?? '').length + 1 });
  }

  private chance(): boolean {
    return this.random() < 0.5;
  }

  private pick<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.random() * choices.length)] as T;
  }

  /** Returns a number from 0 to 1 (the generator mulberry32). */
  private random(): number {
    this.seed = (this.seed + 0x6d2b79f5) | 0;
    let bits = Math.imul(this.seed ^ (this.seed >>> 15), 1 | this.seed);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 4294967296;
  }
}

/** Renders a document as TOML. The same seed gives the same text. */
export function renderToml(
  document: Table,
  seed: number,
): { readonly text: string; readonly positions: ReadonlyMap<string, TextPosition> } {
  const writer = new TomlWriter(seed);
  writer.writeTable(document, '', []);
  return writer;
}
