// Writes the API reference from the TSDoc comments of the exports: a page for the package root and one for each of the
// entry points below. A page also has the types that its exports refer to, directly or through one other type, unless
// `rondo` or `rondo/host` exports them. `--check` compares the pages with the comments instead.

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
    specifier: 'rondo/signals',
    entry: 'surfaces/signals/index.ts',
    page: 'reference-signals.md',
    introduction: 'In use: [signals of hosted loops](signals.md).',
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
/** `rondo/protocol` and `rondo/host`, which have no page. */
const protocolEntry = 'protocol/index.ts';
const hostEntry = 'host-entry.ts';
const entries = [...entryPoints.map(({ entry }) => entry), protocolEntry, hostEntry];
const entryFiles = entries.map((entry) => `${root}src/${entry}`);
/** How many references lead from an export to a type that its page contains. */
const MAX_REFERENCES = 2;

const configFile = ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile);
const { options } = ts.parseJsonConfigFileContent(configFile.config, ts.sys, root);
const program = ts.createProgram(entryFiles, { ...options, noEmit: true });
const checker = program.getTypeChecker();

/** @typedef {{ name: string, symbol: ts.Symbol, declaration: ts.Declaration }} Exported */

/** Returns what an imported or exported name stands for. @param {ts.Symbol} symbol */
const withoutAlias = (symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol);

/** True if a declaration is in the source of this package. @param {ts.Declaration | undefined} declaration */
const isOwn = (declaration) => declaration?.getSourceFile().fileName.startsWith(`${root}src/`) === true;

/** Returns the exports of an entry point, sorted by name. @param {string} entry @returns {Exported[]} */
function exportsOf(entry) {
  const source = program.getSourceFile(`${root}src/${entry}`);
  const module = source && checker.getSymbolAtLocation(source);
  if (module === undefined) throw new Error(`${entry} has no exports.`);
  return checker
    .getExportsOfModule(module)
    .map((exported) => {
      const symbol = withoutAlias(exported);
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
  const text = declaration
    .getText()
    .replace(/\/\*\*[\s\S]*?\*\//g, '')
    .replace(/\s+/g, ' ');
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

/** Returns the public members of a type, inherited ones included, without those that must be absent. @param {ts.Symbol} symbol */
function membersOf(symbol) {
  const type = checker.getDeclaredTypeOfSymbol(symbol);
  return checker.getPropertiesOfType(type).filter((member) => {
    const [declaration] = member.declarations ?? [];
    if (declaration === undefined || !isOwn(declaration)) return false;
    const name = ts.getNameOfDeclaration(declaration);
    const isHidden = ts.getCombinedModifierFlags(declaration) & (ts.ModifierFlags.Private | ts.ModifierFlags.Override);
    if (isHidden || (name !== undefined && ts.isPrivateIdentifier(name))) return false;
    return !(ts.isPropertySignature(declaration) && declaration.type?.kind === ts.SyntaxKind.NeverKeyword);
  });
}

/** Returns one row per public member. @param {ts.Symbol} symbol */
function memberRows(symbol) {
  return membersOf(symbol).map((member) => {
    const byDefault = tagOf(member, 'default');
    const sentences = [summaryOf(member), byDefault === undefined ? '' : `Default: ${byDefault.replace(/\s+/g, ' ')}.`];
    const text = sentences.filter((sentence) => sentence !== '').join(' ');
    return `| \`${cell(typeTextOf(member))}\` | ${text === '' ? '' : `${cell(text)} `}|`;
  });
}

/** Returns the nodes that contain the types of a function, an alias or the members of a type. @param {Exported} exported */
function typeNodesOf({ symbol, declaration }) {
  if (ts.isFunctionDeclaration(declaration)) {
    const { typeParameters = [], parameters, type } = declaration;
    return [...typeParameters, ...parameters, ...(type === undefined ? [] : [type])];
  }
  if (ts.isTypeAliasDeclaration(declaration)) return [declaration.type];
  if (ts.isVariableDeclaration(declaration)) return declaration.type === undefined ? [] : [declaration.type];
  return membersOf(symbol).flatMap((member) => member.declarations ?? []);
}

/** True for an interface, or an alias that is not computed from other types. @param {ts.Declaration} declaration */
const isReadableType = (declaration) =>
  ts.isInterfaceDeclaration(declaration) ||
  (ts.isTypeAliasDeclaration(declaration) && !ts.isConditionalTypeNode(declaration.type));

/** Returns the documented types of this package that a declaration refers to. @param {Exported} exported */
function referencedBy(exported) {
  /** @type {Exported[]} */
  const found = [];
  /** @param {ts.Node} node */
  const visit = (node) => {
    if (ts.isBlock(node)) return;
    const reference = ts.isTypeReferenceNode(node) ? checker.getSymbolAtLocation(node.typeName) : undefined;
    const symbol = reference && withoutAlias(reference);
    const [declaration] = symbol?.declarations ?? [];
    if (symbol && declaration && isOwn(declaration) && isReadableType(declaration) && summaryOf(symbol) !== '')
      found.push({ name: symbol.name, symbol, declaration });
    ts.forEachChild(node, visit);
  };
  typeNodesOf(exported).forEach(visit);
  return found;
}

/**
 * Returns the types that exports refer to, sorted by name, without those that a reader finds elsewhere.
 * @param {readonly Exported[]} exported @param {ReadonlySet<ts.Symbol>} elsewhere
 */
function referencedTypes(exported, elsewhere) {
  const known = new Set([...elsewhere, ...exported.map(({ symbol }) => symbol)]);
  /** @type {Exported[]} */
  const all = [];
  for (let last = exported, references = 0; references < MAX_REFERENCES; references++) {
    const found = last.flatMap(referencedBy).filter(({ symbol }) => !known.has(symbol) && known.add(symbol));
    all.push(...found);
    last = found;
  }
  return all.sort((a, b) => a.name.localeCompare(b.name));
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
    ...(specifier === 'rondo' ? [] : ["Types of `'rondo'` are in [its reference](reference.md)."]),
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

for (const entryPoint of entryPoints) {
  const page = new URL(`../docs/${entryPoint.page}`, import.meta.url);
  const text = render(entryPoint);
  if (!process.argv.includes('--check')) writeFileSync(page, text);
  else if (!existsSync(page) || readFileSync(page, 'utf8') !== text) {
    console.error(`docs/${entryPoint.page} is out of date: run \`node scripts/api-reference.mjs\`.`);
    process.exitCode = 1;
  }
}
