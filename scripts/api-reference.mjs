// Writes the API reference from the TSDoc comments of the exports to docs/reference: a page for each of the entry points.
// A page also has the types that its exports refer to, directly or through one other type, unless `rondo` or `rondo/host`
// exports them.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { entryPoints, hostEntry, protocolEntry } from './entry-points.mjs';
import { exportsOf, membersOf, referencedTypes, summaryOf, tagOf, textOf, typeTextOf } from './exported-symbols.mjs';

/** @typedef {import('./entry-points.mjs').EntryPoint} EntryPoint */
/** @typedef {import('./exported-symbols.mjs').Exported} Exported */

/** @param {string} text */
const cell = (text) => text.replaceAll('|', '\\|');

/** Returns one row per public member. @param {ts.Symbol} symbol */
function memberRows(symbol) {
  return membersOf(symbol).map((member) => {
    const byDefault = tagOf(member, 'default');
    const sentences = [summaryOf(member), byDefault === undefined ? '' : `Default: ${byDefault.replace(/\s+/g, ' ')}.`];
    const text = sentences.filter((sentence) => sentence !== '').join(' ');
    return `| \`${cell(typeTextOf(member))}\` | ${text === '' ? '' : `${cell(text)} `}|`;
  });
}

/** Returns the signature of a function. @param {ts.Declaration} declaration */
function signatureOf(declaration) {
  if (!ts.isFunctionDeclaration(declaration)) return undefined;
  const text = declaration.getText();
  const end = declaration.body === undefined ? text.length : text.length - declaration.body.getText().length;
  return text
    .slice(0, end)
    .replace(/^export (?:async )?/, '')
    .trim();
}

/** @param {Exported} exported */
function sectionOf({ name, symbol, declaration }) {
  const signature = signatureOf(declaration);
  const example = tagOf(symbol, 'example')?.replace(/^```\w*\n|\n```$/g, '');
  const alias = ts.isTypeAliasDeclaration(declaration) ? declaration.getText().replace(/^export /, '') : undefined;
  const code = signature ?? alias;
  const rows = ts.isFunctionDeclaration(declaration) || alias !== undefined ? [] : memberRows(symbol);
  return [
    `### ${name}`,
    '',
    textOf(symbol),
    ...(code === undefined ? [] : ['', '```typescript', code, '```']),
    ...(example === undefined ? [] : ['', 'Example:', '', '```typescript', example, '```']),
    ...(rows.length === 0 ? [] : ['', '| Member | Meaning |', '|---|---|', ...rows]),
    '',
  ];
}

/** @param {Exported} exported */
const isValue = ({ symbol }) => (symbol.flags & ts.SymbolFlags.Value) !== 0;

/** Returns a heading and the sections of some exports. @param {string} heading @param {readonly Exported[]} exported */
const chapterOf = (heading, exported) =>
  exported.length === 0 ? [] : [`## ${heading}`, '', ...exported.flatMap(sectionOf)];

const protocolTypes = new Set(exportsOf(protocolEntry).map(({ symbol }) => symbol));

/** Returns the chapter of the types that are no exports of the page. @param {readonly Exported[]} types */
function referencedChapter(types) {
  if (types.length === 0) return [];
  const sections = types.flatMap((type) => {
    const [heading = '', ...section] = sectionOf(type);
    return protocolTypes.has(type.symbol)
      ? [heading, '', "From `'rondo/protocol'`.", ...section]
      : [heading, ...section];
  });
  return ['## Types that these refer to', '', ...sections];
}

/** Returns the types that a page does not repeat: of `rondo/host`, and of the page of `rondo`. @param {string} specifier */
function documentedElsewhere(specifier) {
  const inHost = new Set(exportsOf(hostEntry).map(({ symbol }) => symbol));
  if (specifier === 'rondo') return inHost;
  const main = exportsOf('index.ts');
  return new Set([...inHost, ...[...main, ...referencedTypes(main, inHost)].map(({ symbol }) => symbol)]);
}

/** Returns the page of an entry point. @param {EntryPoint} entryPoint */
function render({ specifier, entry, introduction }) {
  const all = exportsOf(entry);
  const undocumented = all.filter(({ symbol }) => summaryOf(symbol) === '');
  if (undocumented.length > 0)
    throw new Error(`Without a comment: ${undocumented.map(({ name }) => name).join(', ')}.`);
  return [
    specifier === 'rondo' ? '# API reference' : `# API reference: ${specifier}`,
    '',
    `The exports of \`'${specifier}'\`, from the comments of the code. ${introduction}`,
    ...(specifier === 'rondo' ? [] : ["Types of `'rondo'` are in [its reference](rondo.md)."]),
    '',
    ...chapterOf('Functions and classes', all.filter(isValue)),
    ...chapterOf(
      'Types',
      all.filter((exported) => !isValue(exported)),
    ),
    ...referencedChapter(referencedTypes(all, documentedElsewhere(specifier))),
  ]
    .join('\n')
    .trimEnd()
    .concat('\n');
}

/** Returns the pages of the API reference by the names of their files. @returns {ReadonlyMap<string, string>} */
export function referencePages() {
  return new Map(entryPoints.map((entryPoint) => [entryPoint.page, render(entryPoint)]));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const pages = referencePages();
  const folder = fileURLToPath(new URL('../docs/reference', import.meta.url));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  for (const [page, text] of pages) writeFileSync(`${folder}/${page}`, text);
}
