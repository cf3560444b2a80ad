/**
 * The lines of a Mermaid diagram. Ids are generated, and every text of a definition is a label in which all characters
 * with a meaning in Mermaid are entity codes, so that no text can end its label or add a line.
 */

const MAX_LABEL_CHARS = 80;
/** Characters that have no meaning in Mermaid: letters with their marks, digits, and a few signs between them. */
const SPECIAL = /[^\p{L}\p{M}\p{N} _.,-]|(?<![\p{L}\p{N}])-|-(?![\p{L}\p{N}])/gu;

/** Returns a text as a label: on one line, at most 80 characters long, and escaped. */
export function labelOf(text: string): string {
  const line = text
    .replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ')
    .replace(/\p{Surrogate}/gu, '\ufffd')
    .trim();
  const characters = Array.from(line);
  const short = characters.length > MAX_LABEL_CHARS ? `${characters.slice(0, MAX_LABEL_CHARS - 1).join('')}…` : line;
  const escaped = short.replace(SPECIAL, (character) => `#${character.codePointAt(0)};`);
  return escaped === '' ? ' ' : escaped;
}

/** The shape of a node: a step, a choice, or the begin and the end. */
type NodeShape = 'box' | 'choice' | 'round' | 'call';

const SHAPES: { readonly [shape in NodeShape]: readonly [open: string, close: string] } = {
  box: ['["', '"]'],
  choice: ['{"', '"}'],
  round: ['(["', '"])'],
  call: ['[["', '"]]'],
};

/** Writes a flowchart from top to bottom. */
export class Flowchart {
  private readonly lines = ['flowchart TD'];
  private indent = '  ';
  private count = 0;

  /** Adds a node, and returns its id. */
  node(label: string, shape: NodeShape = 'box'): string {
    const id = this.nextId();
    const [open, close] = SHAPES[shape];
    this.line(`${id}${open}${labelOf(label)}${close}`);
    return id;
  }

  /** Adds an edge. */
  edge(from: string, to: string, label?: string): void {
    this.line(label === undefined ? `${from} --> ${to}` : `${from} -->|"${labelOf(label)}"| ${to}`);
  }

  /** Adds the nodes and edges of `build` as a group. */
  group<T>(label: string, build: () => T): T {
    this.line(`subgraph ${this.nextId()}["${labelOf(label)}"]`);
    const outer = this.indent;
    this.indent += '  ';
    const built = build();
    this.indent = outer;
    this.line('end');
    return built;
  }

  toString(): string {
    return `${this.lines.join('\n')}\n`;
  }

  private line(text: string): void {
    this.lines.push(this.indent + text);
  }

  private nextId(): string {
    this.count += 1;
    return `n${this.count}`;
  }
}
