// Extracts the JavaScript code of a document.

/** A fenced `js` block of a document and the line of its first statement. */
interface Snippet {
  readonly file: string;
  readonly line: number;
  readonly code: string;
}

/** Returns the snippets of a document, in order. */
export function snippetsIn(file: string, text: string): Snippet[] {
  const snippets: Snippet[] = [];
  const fence = /^```js\n([\s\S]*?)^```$/gm;
  for (const match of text.matchAll(fence)) {
    const line = text.slice(0, match.index).split('\n').length + 1;
    snippets.push({ file, line, code: match[1] ?? '' });
  }
  return snippets;
}
