// Reads the exports of the entry points from the sources: their comments, members and types.

import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { entryPoints, hostEntry, protocolEntry } from './entry-points.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
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
export function exportsOf(entry) {
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
export function textOf(symbol) {
  const text = ts.displayPartsToString(symbol.getDocumentationComment(checker));
  return text.replace(/\s*\n\s*(?!\s|- )/g, ' ').trim();
}

/** Returns the text of a TSDoc comment in one line. @param {ts.Symbol} symbol */
export const summaryOf = (symbol) => textOf(symbol).replace(/\s*\n\s*/g, ' ');

/** Returns the content of a TSDoc tag; undefined if there is none. @param {ts.Symbol} symbol @param {string} name */
export function tagOf(symbol, name) {
  const tag = symbol.getJsDocTags(checker).find((item) => item.name === name);
  return tag === undefined ? undefined : ts.displayPartsToString(tag.text).trim();
}

/** Returns the declared type or signature of a member. @param {ts.Symbol} member */
export function typeTextOf(member) {
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

/** Returns the public members of a type, inherited ones included, without those that must be absent. @param {ts.Symbol} symbol */
export function membersOf(symbol) {
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
export function referencedTypes(exported, elsewhere) {
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
