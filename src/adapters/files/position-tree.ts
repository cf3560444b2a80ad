/**
 * The positions of the members of a document. A scanner builds the tree once; then the position of any JSON Pointer is
 * found without reading the text again.
 */
import { lastIndexAtMost } from '../../base/binary-search.js';
import { parseJsonPointer, type TextPosition } from './document-read-error.js';

/** A member of a document: where its key or array element starts, and its own members. */
export class PositionNode {
  offset: number;
  private readonly children = new Map<string, PositionNode>();
  private lastElement: PositionNode | undefined;
  private elementCount = 0;

  constructor(offset: number) {
    this.offset = offset;
  }

  /** Returns the member of a name, which is added if it is new. The first offset is kept. */
  member(name: string, offset: number): PositionNode {
    const known = this.children.get(name);
    if (known !== undefined) return known;
    const added = new PositionNode(offset);
    this.children.set(name, added);
    return added;
  }

  /** Adds an element to this array. */
  addElement(offset: number): PositionNode {
    this.lastElement = this.member(String(this.elementCount++), offset);
    return this.lastElement;
  }

  /** The last element of an array; the node itself if it is no array. */
  get current(): PositionNode {
    return this.lastElement ?? this;
  }

  /** Returns the member that the path leads to, or the innermost existing one around it. */
  find(path: readonly string[]): PositionNode {
    let found: PositionNode = this;
    for (const name of path) {
      const next = found.children.get(name);
      if (next === undefined) return found;
      found = next;
    }
    return found;
  }
}

/** Returns the position of a JSON Pointer, or of the innermost existing member around it. */
export type FindPosition = (pointer: string) => TextPosition;

/** Creates the search for positions in a text whose members are known. */
export function positionFinder(text: string, root: PositionNode): FindPosition {
  const lineStarts = [0];
  for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', end + 1)) lineStarts.push(end + 1);
  const byteOrderMark = text.startsWith('\ufeff') ? 1 : 0;
  return (pointer) => {
    const { offset } = root.find(parseJsonPointer(pointer));
    const line = lastIndexAtMost(lineStarts, offset);
    const column = offset - (lineStarts[line] ?? 0) + 1;
    return { line: line + 1, column: Math.max(1, line === 0 ? column - byteOrderMark : column) };
  };
}
