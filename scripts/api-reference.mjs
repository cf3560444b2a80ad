// Writes the API reference from the TSDoc comments of the exports: a page for the package root and one for each of the
// entry points below. `--check` compares the pages with the comments instead.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const root = fileURLToPath(new URL('..', import.meta.url));
/** @typedef {{ specifier: string, entry: string, page: string, introduction: string }} EntryPoint */

/** @type {readonly EntryPoint[]} */
const entryPoints = [
  {
    specifier: 'rondo',
    entry: 'index.ts',
    page: 'reference.md',
    introduction: "What is below `createRondo` is in `'rondo/host'`.",
  },
  {
    specifier: 'rondo/ai-sdk',
    entry: 'surfaces/ai-sdk/index.ts',
    page: 'reference-ai-sdk.md',
    introduction: 'In use: [the AI SDK](guides/ai-sdk.md), [Hono](cookbook/hono.md), [React](cookbook/react.md).',
  },
  {
    specifier: 'rondo/testing',
    entry: 'testing/index.ts',
    page: 'reference-testing.md',
    introduction: 'In use: [testing an agent](cookbook/testing.md).',
  },
  {
    specifier: 'rondo/toolbox',
    entry: 'adapters/toolbox/index.ts',
    page: 'reference-toolbox.md',
    introduction: 'In use: [the toolbox](guides/toolbox.md).',
  },
];
const entryFiles = entryPoints.map(({ entry }) => `${root}src/${entry}`);

const configFile = ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile);
const { options } = ts.parseJsonConfigFileContent(configFile.config, ts.sys, root);
const program = ts.createProgram(entryFiles, { ...options, noEmit: true });
const checker = program.getTypeChecker();

/** @typedef {{ name: string, symbol: ts.Symbol, declaration: ts.Declaration }} Exported */

/** Returns the exports of an entry point, sorted by name. @param {string} entry @returns {Exported[]} */
function exportsOf(entry) {
  const source = program.getSourceFile(`${root}src/${entry}`);
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

/** Returns the text of a TSDoc comment, each item of a list in a line of its own. @param {ts.Symbol} symbol */
function textOf(symbol) {
  const text = ts.displayPartsToString(symbol.getDocumentationComment(checker));
  return text.replace(/\s*\n\s*(?!\s|- )/g, ' ').trim();
}

/** Returns the text of a TSDoc comment in one line. @param {ts.Symbol} symbol */
const summaryOf = (symbol) => textOf(symbol).replace(/\s*\n\s*/g, ' ');

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
    (ts.isMethodDeclaration(declaration) || ts.isGetAccessorDeclaration(declaration)) && declaration.body !== undefined
      ? text.slice(0, text.length - declaration.body.getText().replace(/\s+/g, ' ').length)
      : text;
  return withoutBody
    .replace(/^(?:(?:readonly|async|override|static) )+/, '')
    .replace(/^get (\w+)\(\)/, '$1')
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
    '',
    ...chapterOf('Functions and classes', all.filter(isValue)),
    ...chapterOf(
      'Types',
      all.filter((exported) => !isValue(exported)),
    ),
  ]
    .join('\n')
    .trimEnd()
    .concat('\n');
}

for (const entryPoint of entryPoints) {
  const page = new URL(`../docs/${entryPoint.page}`, import.meta.url);
  const text = render(entryPoint);
  if (!process.argv.includes('--check')) writeFileSync(page, text);
  else if (!existsSync(page) || readFileSync(page, 'utf8') !== text) {
    console.error(`docs/${entryPoint.page} is out of date: run \`node scripts/api-reference.mjs\`.`);
    process.exitCode = 1;
  }
}
