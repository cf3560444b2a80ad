/**
 * Counts the programs of the comparison: `node examples/compare/count.mjs`. Lines: those with code. Concepts: the
 * distinct names that a package declares, as imported names, members (called, read or destructured) and options (keys
 * of object literals). Names of the program, JavaScript, Node and zod do not count.
 */
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

export const PROGRAMS = ['smallest-loop', 'agent-approval', 'durable-workflow'];
export const VERSIONS = ['rondo', 'ai-sdk', 'mastra'];

/** The versions that are shorter because they do less: the AI SDK has no durable execution. */
const INCOMPLETE = ['ai-sdk/durable-workflow'];

const root = fileURLToPath(new URL('../..', import.meta.url));

/** @typedef {{ program: string, version: string, lines: number, concepts: string[] }} Count */

/**
 * Counts some versions of all programs. Their packages must be installed.
 * @param {readonly string[]} versions @returns {Count[]}
 */
export function countAll(versions) {
  const { config } = ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [] }, ts.sys, root);
  const names = PROGRAMS.flatMap((program) => versions.map((version) => ({ program, version })));
  const fileOf = (/** @type {{ program: string, version: string }} */ { program, version }) =>
    `${root}examples/compare/${version}/${program}.ts`;
  const compiled = ts.createProgram(names.map(fileOf), options);
  const checker = compiled.getTypeChecker();
  return names.map((name) => {
    const source = compiled.getSourceFile(fileOf(name));
    if (source === undefined) throw new Error(`${fileOf(name)} does not exist`);
    return { ...name, lines: countLines(source), concepts: conceptsIn(source, checker) };
  });
}

/** @param {ts.SourceFile} source @returns {number} */
function countLines(source) {
  const lines = new Set();
  /** @param {ts.Node} node */
  const visit = (node) => {
    const children = node.getChildren(source);
    if (children.length === 0 && node.getWidth(source) > 0) {
      const [first, last] = [node.getStart(source), node.getEnd()].map(
        (position) => source.getLineAndCharacterOfPosition(position).line,
      );
      for (let line = first ?? 0; line <= (last ?? 0); line += 1) lines.add(line);
    }
    children.forEach(visit);
  };
  visit(source);
  return lines.size;
}

/** @param {ts.SourceFile} source @param {ts.TypeChecker} checker @returns {string[]} */
function conceptsIn(source, checker) {
  /** @type {Set<string>} */
  const concepts = new Set();
  /** @param {ts.Node} node */
  const visit = (node) => {
    if (ts.isImportDeclaration(node) && checker.getSymbolAtLocation(node.moduleSpecifier) === undefined)
      throw new Error(`${source.fileName} imports ${node.moduleSpecifier.getText()}, which is not installed.`);
    const name = nameIn(node);
    if (name !== undefined && declarationsOf(node, name, checker).some(isOfPackage)) concepts.add(name.text);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return [...concepts].sort();
}

/** Returns the name that an import, a member access, an option or a destructured member uses. @param {ts.Node} node */
function nameIn(node) {
  if (ts.isImportSpecifier(node)) return node.name;
  if (ts.isPropertyAccessExpression(node)) return ts.isIdentifier(node.name) ? node.name : undefined;
  if (ts.isPropertyAssignment(node) || ts.isShorthandPropertyAssignment(node) || ts.isMethodDeclaration(node)) {
    return ts.isIdentifier(node.name) ? node.name : undefined;
  }
  if (!ts.isBindingElement(node) || !ts.isObjectBindingPattern(node.parent)) return undefined;
  const name = node.propertyName ?? node.name;
  return ts.isIdentifier(name) ? name : undefined;
}

/** @param {ts.Node} node @param {ts.Identifier} name @param {ts.TypeChecker} checker @returns {readonly ts.Node[]} */
function declarationsOf(node, name, checker) {
  if (ts.isBindingElement(node)) return memberOf(checker.getTypeAtLocation(node.parent), name, checker);
  if (ts.isObjectLiteralExpression(node.parent)) {
    const type = checker.getContextualType(node.parent);
    return type === undefined ? [] : memberOf(type, name, checker);
  }
  const symbol = checker.getSymbolAtLocation(name);
  if (symbol === undefined) return [];
  const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  return target.declarations ?? [];
}

/** @param {ts.Type} type @param {ts.Identifier} name @param {ts.TypeChecker} checker @returns {readonly ts.Node[]} */
function memberOf(type, name, checker) {
  const parts = type.isUnionOrIntersection() ? type.types : [type];
  return parts.flatMap((part) => checker.getPropertyOfType(part, name.text)?.declarations ?? []);
}

/** True for a declaration in a package other than TypeScript, Node's types and zod. @param {ts.Node} declaration */
function isOfPackage(declaration) {
  const { fileName } = declaration.getSourceFile();
  if (fileName.startsWith(`${root}src/`) || fileName.startsWith(`${root}dist/`)) return true;
  return /\/node_modules\/(?!typescript\/|@types\/node\/|zod\/)/.test(fileName);
}

/** Returns where Rondo needs more than a version that does the same. @param {readonly Count[]} counts @returns {string[]} */
export function excessesOf(counts) {
  return counts
    .filter(({ program, version }) => !INCOMPLETE.includes(`${version}/${program}`))
    .flatMap(({ program, version, lines, concepts }) => {
      const rondo = counts.find((count) => count.program === program && count.version === 'rondo');
      if (rondo === undefined || rondo.concepts.length === 0) return [`rondo/${program}: not counted`];
      return [
        ...(rondo.lines > lines ? [`rondo/${program}: more lines than ${version}`] : []),
        ...(rondo.concepts.length > concepts.length ? [`rondo/${program}: more concepts than ${version}`] : []),
      ];
    });
}

/** Returns the cell of the table for one count. @param {Count} count @returns {string} */
export function cellOf({ program, version, lines, concepts }) {
  const note = INCOMPLETE.includes(`${version}/${program}`) ? ' (not durable)' : '';
  return `[${lines} lines, ${concepts.length} concepts](${version}/${program}.ts)${note}`;
}

/** Returns the table of the README. @param {readonly Count[]} counts @returns {string} */
export function tableOf(counts) {
  const rows = PROGRAMS.map((program) => {
    const cells = counts.filter((count) => count.program === program).map(cellOf);
    return `| ${program} | ${cells.join(' | ')} |`;
  });
  return ['| Program | Rondo | AI SDK | Mastra |', '|---|---|---|---|', ...rows].join('\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const counts = countAll(VERSIONS);
  for (const { program, version, concepts } of counts) console.log(`${version}/${program}: ${concepts.join(', ')}`);
  console.log(`\n${tableOf(counts)}`);
}
