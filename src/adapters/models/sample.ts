/**
 * Creates a sample value of a JSON Schema, with texts that quote a prompt. The result is deterministic. It satisfies
 * the common keywords; `pattern` is satisfied only by the `examples` or the `default` of the schema, and others, such
 * as `not`, `if`, `contains` and `patternProperties`, are ignored. Recursive schemas terminate: below a certain depth
 * only required members are created, and null replaces values that are nested too deeply or exceed the maximum number.
 */
import { isObject, ownProperty } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import { fitTextLength, numberOr, numberWithinBounds, PromptWords, sampleForFormat } from './sample-values.js';
import { arrayOrEmpty, type SchemaObject, SchemaResolver, schemaTypeOf } from './schema-resolver.js';

/** Below this depth, optional members and items are omitted. */
const MAX_OPTIONAL_DEPTH = 4;
const DEFAULT_ARRAY_LENGTH = 3;
const MAX_DEPTH = 64;
const MAX_VALUES = 20_000;
const MAX_PROPERTIES = 1000;

/** The position of a value in the sample. */
interface SamplePosition {
  /** The name of the member; for an item of a list, the name of the list in the singular. */
  readonly label: string;
  /** The zero-based index in the innermost list, including rejected duplicates; 0 outside of lists. */
  readonly index: number;
  readonly depth: number;
}

/** Returns a sample value of the schema, with texts that quote the prompt. See above for unsupported keywords. */
export function sampleValue(schema: unknown, prompt: string): Json {
  return new Sampler(schema, prompt).sample(schema, { label: 'answer', index: 0, depth: 0 });
}

class Sampler {
  private readonly schemas: SchemaResolver;
  private readonly words: PromptWords;
  private valueCount = 0;

  constructor(root: unknown, prompt: string) {
    this.schemas = new SchemaResolver(root);
    this.words = new PromptWords(prompt);
  }

  sample(schema: unknown, position: SamplePosition): Json {
    if (++this.valueCount > MAX_VALUES || position.depth > MAX_DEPTH) return null;
    const resolved = this.schemas.resolve(schema, position.depth > MAX_OPTIONAL_DEPTH);
    if (Object.hasOwn(resolved, 'const')) return resolved.const as Json;
    const choices = arrayOrEmpty(resolved.enum);
    if (choices.length > 0) return choices[position.index % choices.length] as Json;
    switch (schemaTypeOf(resolved)) {
      case 'object':
        return this.sampleObject(resolved, position);
      case 'array':
        return this.sampleArray(resolved, position);
      case 'number':
        return numberWithinBounds(resolved, this.words.count + position.index, false);
      case 'integer':
        return numberWithinBounds(resolved, this.words.count + position.index, true);
      case 'boolean':
        return position.index % 2 === 0;
      case 'null':
        return null;
      default:
        return this.sampleString(resolved, position);
    }
  }

  private sampleString(schema: SchemaObject, { label, index }: SamplePosition): string {
    const examples = [...arrayOrEmpty(schema.examples), schema.default].filter((value) => typeof value === 'string');
    // Strings are not generated from patterns; the examples of the schema should match its pattern.
    if (typeof schema.pattern === 'string' && examples.length > 0) return String(examples[index % examples.length]);
    const format = sampleForFormat(schema.format, index);
    return format ?? fitTextLength(schema, this.words.phrase(label, index));
  }

  private sampleObject(schema: SchemaObject, { depth, index }: SamplePosition): Json {
    const properties = ownProperty(schema, 'properties');
    const declared = isObject(properties) ? Object.keys(properties) : [];
    const required = arrayOrEmpty(schema.required).filter((name) => typeof name === 'string');
    const minCount = Math.min(numberOr(schema.minProperties, 0), MAX_PROPERTIES);
    const maxCount = Math.max(required.length, numberOr(schema.maxProperties, Number.POSITIVE_INFINITY));
    const optional = depth > MAX_OPTIONAL_DEPTH ? [] : declared.filter((name) => !required.includes(name));
    const names = [...required, ...optional].slice(0, maxCount);
    const extras = [...declared, ...Array.from({ length: minCount }, (_, extra) => `extra${extra + 1}`)];
    names.push(...extras.filter((name) => !names.includes(name)).slice(0, Math.max(0, minCount - names.length)));
    const sortedNames = [
      ...declared.filter((name) => names.includes(name)),
      ...names.filter((name) => !declared.includes(name)),
    ];
    const entries = sortedNames.map((name): [string, Json] => {
      const member = ownProperty(properties, name) ?? schema.additionalProperties;
      return [name, this.sample(member, { label: name, index, depth: depth + 1 })];
    });
    return Object.fromEntries(entries);
  }

  private sampleArray(schema: SchemaObject, { label, depth }: SamplePosition): Json {
    const prefixItems = arrayOrEmpty(schema.prefixItems);
    const minLength = numberOr(schema.minItems, 0);
    const defaultLength =
      depth > MAX_OPTIONAL_DEPTH || schema.items === false
        ? prefixItems.length
        : prefixItems.length + DEFAULT_ARRAY_LENGTH;
    const length = Math.max(minLength, Math.min(defaultLength, numberOr(schema.maxItems, defaultLength)));
    const itemPosition = { label: label.replace(/([^s])s$/, '$1'), depth: depth + 1 };
    const items: Json[] = [];
    const serializedItems = new Set<string>();
    // Samples may repeat, so a list of unique items needs more attempts than items.
    const isUnique = schema.uniqueItems === true;
    const maxAttempts = isUnique ? length * 4 : length;
    for (let index = 0; index < maxAttempts && items.length < length && this.valueCount <= MAX_VALUES; index++) {
      const itemSchema = items.length < prefixItems.length ? prefixItems[items.length] : schema.items;
      const item = this.sample(itemSchema, { ...itemPosition, index });
      const serialized = isUnique ? JSON.stringify(item) : '';
      if (isUnique && serializedItems.has(serialized)) continue;
      serializedItems.add(serialized);
      items.push(item);
    }
    return items;
  }
}
