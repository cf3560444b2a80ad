// Writes docs/reference.md, the reference of the package root, from the TSDoc comments of its exports. `--check` compares
// the page with them instead.

import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const root = fileURLToPath(new URL('..', import.meta.url));
const page = new URL('../docs/reference.md', import.meta.url);
const entry = `${root}src/index.ts`;

const configFile = ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile);
const { options } = ts.parseJsonConfigFileContent(configFile.config, ts.sys, root);
const program = ts.createProgram([entry], { ...options, noEmit: true });
const checker = program.getTypeChecker();

/** @typedef {{ name: string, symbol: ts.Symbol, declaration: ts.Declaration }} Exported */

/** Returns the exports of the package root, sorted by name. @returns {Exported[]} */
function exportsOfRoot() {
  const source = program.getSourceFile(entry);
  const module = source && checker.getSymbolAtLocation(source);
  if (module === undefined) throw new Error(`${entry} has no exports.`);
  return checker
    .getExportsOfModule(module)
    .map((exported) => {
      const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
      const [declaration] = symbol.declarations ?? [];
      if (declaration === undefined) throw new Error(`${exported.name} has no declaration.`);
      return { name: exported.name, symbol, declaration };
    })
    .sort((a, b) => a.name.localeCompare(b.name));
}

/** Returns the text of a TSDoc comment in one line. @param {ts.Symbol} symbol */
function summaryOf(symbol) {
  const text = ts.displayPartsToString(symbol.getDocumentationComment(checker));
  return text.replace(/\s*\n\s*/g, ' ').trim();
}

/** Returns the content of a TSDoc tag; undefined if there is none. @param {ts.Symbol} symbol @param {string} name */
function tagOf(symbol, name) {
  const tag = symbol.getJsDocTags(checker).find((item) => item.name === name);
  return tag === undefined ? undefined : ts.displayPartsToString(tag.text).trim();
}

/** Returns the declared type or signature of a member. @param {ts.Symbol} member */
function typeTextOf(member) {
  const [declaration] = member.declarations ?? [];
  if (declaration === undefined) return '';
  const text = declaration.getText().replace(/\s+/g, ' ');
  const withoutBody =
    ts.isMethodDeclaration(declaration) && declaration.body !== undefined
      ? text.slice(0, text.length - declaration.body.getText().replace(/\s+/g, ' ').length)
      : text;
  return withoutBody
    .replace(/^(?:(?:readonly|async|override|static) )+/, '')
    .replace(/ = \{\}|;$/g, '')
    .trim();
}

/** @param {string} text */
const cell = (text) => text.replaceAll('|', '\\|');

/** Returns one row per documented public member. @param {ts.Symbol} symbol */
function memberRows(symbol) {
  const type = checker.getDeclaredTypeOfSymbol(symbol);
  return checker.getPropertiesOfType(type).flatMap((member) => {
    const [declaration] = member.declarations ?? [];
    const isOwn = declaration?.getSourceFile().fileName.startsWith(`${root}src/`) === true;
    const flags = declaration === undefined ? 0 : ts.getCombinedModifierFlags(declaration);
    const summary = summaryOf(member);
    if (!isOwn || summary === '' || flags & ts.ModifierFlags.Private) return [];
    const byDefault = tagOf(member, 'default');
    const text = byDefault === undefined ? summary : `${summary} Default: ${byDefault}.`;
    return [`| \`${cell(typeTextOf(member))}\` | ${cell(text)} |`];
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
    summaryOf(symbol),
    ...(code === undefined ? [] : ['', '```typescript', code, '```']),
    ...(example === undefined ? [] : ['', 'Example:', '', '```typescript', example, '```']),
    ...(rows.length === 0 ? [] : ['', '| Member | Meaning |', '|---|---|', ...rows]),
    '',
  ];
}

/** @param {Exported} exported */
const isValue = ({ symbol }) => (symbol.flags & ts.SymbolFlags.Value) !== 0;

function render() {
  const all = exportsOfRoot();
  const undocumented = all.filter(({ symbol }) => summaryOf(symbol) === '');
  if (undocumented.length > 0)
    throw new Error(`Without a comment: ${undocumented.map(({ name }) => name).join(', ')}.`);
  return [
    '# API reference',
    '',
    "The exports of `'rondo'`, from the comments of the code. What is below `createRondo` is in `'rondo/host'`.",
    '',
    '## Functions and classes',
    '',
    ...all.filter(isValue).flatMap(sectionOf),
    '## Types',
    '',
    ...all.filter((exported) => !isValue(exported)).flatMap(sectionOf),
  ]
    .join('\n')
    .trimEnd()
    .concat('\n');
}

const text = render();
if (!process.argv.includes('--check')) writeFileSync(page, text);
else if (readFileSync(page, 'utf8') !== text) {
  console.error('docs/reference.md is out of date: run `node scripts/api-reference.mjs`.');
  process.exitCode = 1;
}
