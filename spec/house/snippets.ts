// The code in the documents, so that it can be run.

export interface Snippet {
  readonly file: string;
  readonly line: number;
  readonly code: string;
}

export function snippetsIn(file: string, text: string): Snippet[] {
  const found: Snippet[] = [];
  const fence = /^```js\n([\s\S]*?)^```$/gm;
  for (const match of text.matchAll(fence)) {
    const line = text.slice(0, match.index).split('\n').length + 1;
    found.push({ file, line, code: match[1] ?? '' });
  }
  return found;
}
