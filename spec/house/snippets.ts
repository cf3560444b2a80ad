// Extracts the JavaScript and TypeScript code of a document.

/** A fenced block of code of a document. */
export interface Snippet {
  readonly file: string;
  /** The line of its first statement. */
  readonly line: number;
  readonly language: 'js' | 'ts';
  readonly code: string;
  /** The name in the comment on the first line, such as `// model.mjs`: later snippets of the page may import it. */
  readonly name?: string;
}

const FENCE = /^```(js|mjs|javascript|ts|typescript)\n([\s\S]*?)^```$/gm;
const NAME = /^\/\/ ([\w./-]+\.(?:mjs|js|ts))\n/;

/** Returns the snippets of a document, in order. */
export function snippetsIn(file: string, text: string): Snippet[] {
  return [...text.matchAll(FENCE)].map((match) => {
    const [, fence = '', code = ''] = match;
    const line = text.slice(0, match.index).split('\n').length + 1;
    const name = NAME.exec(code)?.[1];
    return { file, line, language: fence.startsWith('t') ? 'ts' : 'js', code, ...(name !== undefined && { name }) };
  });
}

/** Returns the named snippets of the same page above a snippet. */
export function filesFor(snippet: Snippet, snippets: readonly Snippet[]): Snippet[] {
  return snippets.filter(({ file, line, name }) => file === snippet.file && line < snippet.line && name !== undefined);
}

/** True if a snippet is the text of a file, or an excerpt of it, apart from the comment that names the file. */
export function isQuoteOf({ code }: Pick<Snippet, 'code'>, text: string): boolean {
  return text.includes(code.replace(NAME, '').trim());
}
