/** Checks what the texts of a plan refer to: mappings, placeholders and conditions, against the values in reach. */
import { checkMemberPath } from '../../../json/cel/check.js';
import { compileJsonPath } from '../../../json/path.js';
import type { JsonSchema } from '../../../protocol/loop.js';
import type { PlanMapping } from '../../../protocol/plan.js';
import { appendPointer, DefinitionIssues } from '../../definition/shape.js';
import { compileCondition } from '../condition.js';
import { compileText } from '../placeholders.js';
import { objectSchema } from './accepted-input.js';
import { type ReadableValues, schemaAt } from './readable-values.js';

/** The names that exist only inside of certain blocks, and which. */
const BLOCK_NAMES: { readonly [name: string]: string } = {
  item: 'each and fanout',
  index: 'each and fanout',
  iteration: 'repeat',
};
const OPTIONAL = 'optional:';
const TEXT: JsonSchema = { type: 'string' };
const LIST: JsonSchema = { type: 'array' };
const describeMissing = (variable: string): string => (variable === 'input' ? 'is not declared' : 'is not produced');

/** Checks the references of one plan, and adds an issue for each that cannot be resolved. */
export class ReferenceCheck {
  private readonly issues: DefinitionIssues;
  /** The names that any step of the plan captures. */
  private readonly captured: ReadonlySet<string>;

  constructor(issues: DefinitionIssues, captured: ReadonlySet<string>) {
    this.issues = issues;
    this.captured = captured;
  }

  /** Adds an issue. */
  add(path: string, reason: string): void {
    this.issues.add(path, reason);
  }

  /** Runs a compiler, and adds an issue if it refuses its text. Returns undefined then. */
  attempt<T>(compile: () => T): T | undefined {
    return this.issues.attempt(compile);
  }

  /** Checks a mapping: one path, or one for each member. */
  mapping(mapping: PlanMapping, path: string, values: ReadableValues): void {
    if (typeof mapping === 'string') this.mappedValue(mapping, path, values);
    else
      for (const [member, text] of Object.entries(mapping)) this.mappedValue(text, appendPointer(path, member), values);
  }

  /** Returns the schema of the value that a path selects. */
  schemaOf(mapping: string, values: ReadableValues): JsonSchema {
    if (mapping.startsWith('literal:')) return TEXT;
    const path = pathIn(mapping);
    // `mapping` reports a path that cannot be read.
    const compiled = path.startsWith('$') ? new DefinitionIssues().attempt(() => compileJsonPath(path, '')) : undefined;
    if (compiled === undefined) return {};
    // Any other path selects the list of its matches.
    return compiled.singularSegments === undefined ? LIST : schemaAt(values, compiled.singularSegments);
  }

  /** Returns the schema of the value that a mapping builds. */
  mappedSchema(mapping: PlanMapping, values: ReadableValues): JsonSchema {
    if (typeof mapping === 'string') return mapping.startsWith(OPTIONAL) ? {} : this.schemaOf(mapping, values);
    const members = Object.entries(mapping);
    const required = members.filter(([, text]) => !text.startsWith(OPTIONAL)).map(([member]) => member);
    const schemas = members.map(([member, text]) => [member, this.schemaOf(text, values)] as const);
    return objectSchema(Object.fromEntries(schemas), required);
  }

  /** Checks the placeholders of a text. */
  text(text: string, path: string, values: ReadableValues): void {
    const compiled = this.attempt(() => compileText(text, path));
    for (const placeholder of compiled?.placeholders ?? []) {
      const reason = this.placeholderReason(placeholder, values);
      if (reason !== undefined) this.issues.add(path, `the placeholder {${placeholder}} has no value: ${reason}`);
    }
  }

  /** Checks a condition. In a repetition it may read what an earlier repetition captured. */
  condition(text: string, path: string, values: ReadableValues): void {
    const condition = this.attempt(() => compileCondition(text, path));
    if (condition === undefined) return;
    const readable = values.onCondition();
    if (condition.file !== undefined) {
      this.text(condition.file, path, readable);
      return;
    }
    const unreadable = condition.names.find((name) => readable.get(name) === undefined && this.isKnown(name));
    const reason =
      unreadable === undefined ? condition.check(readable.pick(condition.names)) : this.unreadableReason(unreadable);
    if (reason !== undefined) this.issues.add(path, `the condition cannot hold: ${reason}`);
  }

  private mappedValue(text: string, path: string, values: ReadableValues): void {
    if (text.startsWith('literal:')) return;
    const isOptional = text.startsWith(OPTIONAL);
    const compiled = this.attempt(() => compileJsonPath(pathIn(text), path));
    const names = namesIn(compiled?.leadingSegments ?? []);
    const [first] = names;
    if (first === undefined) return;
    const isKnown = this.captured.has(first) || (values.get(first) ?? values.getCarried(first)) !== undefined;
    if (isOptional && isKnown) return;
    const reason = this.pathReason(names, values);
    if (reason !== undefined) this.issues.add(path, `${text} matches nothing: ${reason}`);
  }

  private placeholderReason(placeholder: string, values: ReadableValues): string | undefined {
    const [first = '', ...members] = placeholder.split('.');
    if (first === 'context') return undefined;
    if (Object.hasOwn(BLOCK_NAMES, first)) return this.pathReason([first, ...members], values);
    if (first !== 'input' && values.get(first) !== undefined)
      return this.pathReason([first, 'output', ...members], values);
    const reason = this.pathReason(['input', first, ...members], values);
    return this.captured.has(first) && !declares(values.get('input'), first) ? this.unreadableReason(first) : reason;
  }

  private pathReason(names: readonly string[], values: ReadableValues): string | undefined {
    const [first = ''] = names;
    if (values.get(first) === undefined && this.isKnown(first)) return this.unreadableReason(first);
    return checkMemberPath(names, values.pick([first]), describeMissing);
  }

  private isKnown(name: string): boolean {
    return this.captured.has(name) || Object.hasOwn(BLOCK_NAMES, name);
  }

  private unreadableReason(name: string): string {
    const blocks = BLOCK_NAMES[name];
    return blocks === undefined
      ? `${name} is not readable here: no earlier step captures it, or the scope of that step has ended`
      : `${name} is not readable here: it exists only inside of ${blocks}`;
  }
}

/** Returns the path of a mapping. */
function pathIn(mapping: string): string {
  return mapping.startsWith(OPTIONAL) ? mapping.slice(OPTIONAL.length) : mapping;
}

/** Returns the names at the start of a path, up to the first index or wildcard. */
function namesIn(segments: readonly (string | number | undefined)[]): readonly string[] {
  const end = segments.findIndex((segment) => typeof segment !== 'string');
  return (end === -1 ? segments : segments.slice(0, end)) as readonly string[];
}

function declares(schema: JsonSchema | undefined, name: string): boolean {
  const { properties } = (schema ?? {}) as { readonly properties?: object };
  return properties !== undefined && Object.hasOwn(properties, name);
}
