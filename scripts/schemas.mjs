// Generates the JSON Schemas in schemas/ from the checks of the parsers. The descriptions are the comments of the
// interfaces in src/protocol/. Run it after a change to either:
// npm run build && node scripts/schemas.mjs && npm run format

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

/** @typedef {{ [name: string]: any }} Schema */

const root = new URL('..', import.meta.url);
const sources = ['loop.ts', 'hosted-loop.ts', 'grant.ts'].map((name) =>
  ts.createSourceFile(name, readFileSync(new URL(`src/protocol/${name}`, root), 'utf8'), ts.ScriptTarget.Latest, true),
);

/** @type {Map<string, ts.InterfaceDeclaration | ts.TypeAliasDeclaration>} */
const declarations = new Map();
for (const source of sources)
  ts.forEachChild(source, (node) => {
    if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) declarations.set(node.name.text, node);
  });

/** Returns the sentences of a comment, without tags and line breaks. @param {ts.Node} node */
function commentOf(node) {
  const [comment] = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc);
  const text = typeof comment?.comment === 'string' ? comment.comment : '';
  const tag = comment?.tags?.find(({ tagName }) => tagName.text === 'default');
  const value = typeof tag?.comment === 'string' ? `Default: ${tag.comment}` : '';
  return [text, value].filter(Boolean).join(' ').replace(/\s+/g, ' ');
}

/** Returns the members of a type that is an object. @param {ts.TypeNode | undefined} type @returns {ts.PropertySignature[]} */
function membersOf(type) {
  if (type === undefined) return [];
  if (ts.isTypeLiteralNode(type)) return type.members.filter(ts.isPropertySignature);
  if (ts.isUnionTypeNode(type)) return type.types.flatMap(membersOf);
  if (ts.isTypeOperatorNode(type)) return membersOf(type.type);
  if (ts.isArrayTypeNode(type)) return membersOf(type.elementType);
  const declaration = ts.isTypeReferenceNode(type) ? declarations.get(type.typeName.getText()) : undefined;
  if (declaration === undefined) return [];
  return ts.isInterfaceDeclaration(declaration)
    ? declaration.members.filter(ts.isPropertySignature)
    : membersOf(declaration.type);
}

/** Returns the comment of the interface that a member has as its type. @param {ts.TypeNode | undefined} type */
function commentOfType(type) {
  const declaration =
    type !== undefined && ts.isTypeReferenceNode(type) ? declarations.get(type.typeName.getText()) : undefined;
  return declaration === undefined ? '' : commentOf(declaration);
}

/**
 * Adds descriptions to the members of a schema. Throws if the schema has a member that the type lacks.
 *
 * @param {Schema} schema
 * @param {readonly ts.PropertySignature[]} members
 * @param {string} path
 * @returns {Schema}
 */
function describe(schema, members, path) {
  if (members.length === 0) return schema;
  const parts = Object.fromEntries(
    ['items', 'then', 'else'].filter((key) => schema[key]).map((key) => [key, describe(schema[key], members, path)]),
  );
  if (schema.properties === undefined) return { ...schema, ...parts };
  const properties = Object.entries(schema.properties).map(([name, /** @type {Schema} */ property]) => {
    if (name.startsWith('$')) return [name, property];
    const found = members.filter((member) => member.name.getText() === name);
    const member = found.find(({ type }) => type?.kind !== ts.SyntaxKind.NeverKeyword);
    if (member === undefined) throw new Error(`src/protocol has no member for ${path}/${name}.`);
    const comment = commentOf(member) || commentOfType(member.type);
    const nested = describe(property, membersOf(member.type), `${path}/${name}`);
    return [name, comment === '' ? nested : { description: comment, ...nested }];
  });
  return { ...schema, ...parts, properties: Object.fromEntries(properties) };
}

/** Returns a schema with the descriptions of an interface, as text. @param {Schema} schema @param {string} type */
function describedText(schema, type) {
  const declaration = /** @type {ts.InterfaceDeclaration} */ (declarations.get(type));
  const described = describe(schema, declaration.members.filter(ts.isPropertySignature), '');
  return `${JSON.stringify(described, null, 2)}\n`;
}

/**
 * Returns the text of each schema file, by name.
 *
 * @param {Schema} definition
 * @param {Schema} config
 * @param {Schema} hostedLoop
 */
export function schemaFiles(definition, config, hostedLoop) {
  return {
    'hosted-loop.json': describedText(hostedLoop, 'HostedLoopDocument'),
    'loop.schema.json': describedText(definition, 'LoopDef'),
    'rondo.schema.json': `${JSON.stringify(config, null, 2)}\n`,
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { definitionSchema } = await import(new URL('dist/loops/definition/definition-schema.js', root).href);
  const { configSchema } = await import(new URL('dist/adapters/files/config-schema.js', root).href);
  const { hostedLoopSchema } = await import(new URL('dist/host/hosted/hosted-document.js', root).href);
  mkdirSync(new URL('schemas', root), { recursive: true });
  for (const [name, text] of Object.entries(schemaFiles(definitionSchema(), configSchema(), hostedLoopSchema()))) {
    writeFileSync(new URL(`schemas/${name}`, root), text);
  }
}
