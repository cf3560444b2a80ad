// Compares the output of the code in the documents with its comments. The comment after a console.log and the comment
// lines directly below it are its complete output. White space is ignored, and "…" matches any text.

import ts from 'typescript';
import { lineOf, nodes, tokens } from './syntax.js';

/** The output that the console.log on a line promises. */
interface Promised {
  readonly line: number;
  readonly text: string;
}

/** The output of one call of the console.log on a line. */
export interface Printed {
  readonly line: number;
  readonly text: string;
}

interface Comment {
  readonly text: string;
  /** True if the line contains nothing else. */
  readonly alone: boolean;
}

function parseSnippet(code: string): ts.SourceFile {
  return ts.createSourceFile('snippet.ts', code, ts.ScriptTarget.Latest, true, ts.ScriptKind.TS);
}

/** Returns the line comments by line number. */
function commentsIn(source: ts.SourceFile): Map<number, Comment> {
  const comments = new Map<number, Comment>();
  for (const token of tokens(source, source)) {
    const start = token.getFullStart();
    const between = source.text.slice(start, token.getStart(source)).split('\n');
    for (const [index, piece] of between.entries()) {
      const text = piece.trim();
      if (!text.startsWith('//')) continue;
      const alone = index > 0 || start === 0;
      comments.set(lineOf(source, start) + index, { text: text.slice('//'.length).trim(), alone });
    }
  }
  return comments;
}

function isPrint(node: ts.Node): node is ts.CallExpression {
  return ts.isCallExpression(node) && node.expression.getText() === 'console.log';
}

/** Returns the outputs that the comments of a snippet promise; an empty text for a console.log without a comment. */
function promisesIn(code: string): Promised[] {
  const source = parseSnippet(code);
  const comments = commentsIn(source);
  return [...nodes(source)].filter(isPrint).map((call) => {
    const last = lineOf(source, call.getEnd());
    const texts: string[] = [];
    const beside = comments.get(last);
    if (beside?.alone === false) texts.push(beside.text);
    for (let line = last + 1, below = comments.get(line); below?.alone; below = comments.get(++line))
      texts.push(below.text);
    const line = lineOf(source, call.expression.getEnd());
    return { line, text: texts.join('\n') };
  });
}

/** Returns the lines of the calls of console.log whose output no comment promises. */
export function unpromisedPrints(code: string): number[] {
  return promisesIn(code).flatMap(({ line, text }) => (text === '' ? [line] : []));
}

/** True if an output equals the promised one. */
function isAsPromised(promised: string, printed: string): boolean {
  return patternOf(promised, '^', '$').test(normalise(printed));
}

/** True if an output contains the promised one. */
export function containsPromised(promised: string, printed: string): boolean {
  return patternOf(promised, '', '').test(normalise(printed));
}

function patternOf(promised: string, before: string, after: string): RegExp {
  const parts = normalise(promised).split(/ ?… ?/);
  return new RegExp(
    before + parts.map((part) => part.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')).join('.*?') + after,
    's',
  );
}

function normalise(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

/** Returns the promises of a snippet that its output breaks. */
export function outputFaults(code: string, printed: readonly Printed[]): string[] {
  return promisesIn(code).flatMap(({ line, text }) => {
    if (text === '') return [];
    const texts = printed.filter((one) => one.line === line).map((one) => one.text);
    if (texts.length === 0) return [`line ${line} promises ${JSON.stringify(text)} and prints nothing`];
    const output = texts.join('\n');
    if (isAsPromised(text, output)) return [];
    return [`line ${line} promises ${JSON.stringify(text)} and prints ${JSON.stringify(output)}`];
  });
}

/** Returns the statements that begin on a line on which another one ends. */
export function fusedStatements(code: string): string[] {
  const source = parseSnippet(code);
  return [...nodes(source)].flatMap((node) => {
    if (!ts.isSourceFile(node) && !ts.isBlock(node) && !ts.isCaseOrDefaultClause(node)) return [];
    return node.statements.slice(1).flatMap((statement, index) => {
      const before = node.statements[index];
      const line = lineOf(source, statement.getStart());
      if (before === undefined || line !== lineOf(source, before.getEnd())) return [];
      return [`line ${line} has two statements: ${source.text.split('\n')[line - 1]}`];
    });
  });
}
