/**
 * A value that fits a JSON Schema, made of the words of a prompt: the same schema and prompt give the same value.
 * Recursive schemas end: deep down only what is required is made, and a value has a bounded number of parts.
 */
import { isObject, ownProperty } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import { fitTextLength, numberOr, numberWithinBounds, PromptWords, sampleForFormat } from './sample-values.js';
import { arrayOrEmpty, type SchemaObject, SchemaResolver, schemaTypeOf } from './schema-resolver.js';

/** Down to here everything is made that a schema offers. */
const MAX_OPTIONAL_DEPTH = 4;
const DEFAULT_ARRAY_LENGTH = 3;
const MAX_DEPTH = 64;
const MAX_VALUES = 20_000;
const MAX_PROPERTIES = 1000;

/** Where a value stands: what it is called, and the how-manieth of its kind it is. */
interface SamplePosition {
  readonly label: string;
  readonly index: number;
  readonly depth: number;
}

/** A value for the schema, in the words of the prompt. */
export function sampleValue(schema: unknown, prompt: string): Json {
  return new Sampler(schema, prompt).sample(schema, { label: 'answer', index: 0, depth: 0 });
}

class Sampler {
  readonly #schemas: SchemaResolver;
  readonly #words: PromptWords;
  #valueCount = 0;

  constructor(root: unknown, prompt: string) {
    this.#schemas = new SchemaResolver(root);
    this.#words = new PromptWords(prompt);
  }

  sample(schema: unknown, place: SamplePosition): Json {
    if (++this.#valueCount > MAX_VALUES || place.depth > MAX_DEPTH) return null;
    const settled = this.#schemas.resolve(schema, place.depth > MAX_OPTIONAL_DEPTH);
    if (Object.hasOwn(settled, 'const')) return settled.const as Json;
    const choices = arrayOrEmpty(settled.enum);
    if (choices.length > 0) return choices[place.index % choices.length] as Json;
    switch (schemaTypeOf(settled)) {
      case 'object':
        return this.#sampleObject(settled, place);
      case 'array':
        return this.#sampleArray(settled, place);
      case 'number':
        return numberWithinBounds(settled, this.#words.count + place.index, false);
      case 'integer':
        return numberWithinBounds(settled, this.#words.count + place.index, true);
      case 'boolean':
        return place.index % 2 === 0;
      case 'null':
        return null;
      default:
        return this.#sampleString(settled, place);
    }
  }

  #sampleString(schema: SchemaObject, { label, index }: SamplePosition): string {
    const given = [...arrayOrEmpty(schema.examples), schema.default].filter((value) => typeof value === 'string');
    // A pattern cannot be followed in general; an example of the author's does.
    if (typeof schema.pattern === 'string' && given.length > 0) return String(given[index % given.length]);
    const format = sampleForFormat(schema.format, index);
    return format ?? fitTextLength(schema, this.#words.phrase(label, index));
  }

  #sampleObject(schema: SchemaObject, { depth, index }: SamplePosition): Json {
    const properties = ownProperty(schema, 'properties');
    const declared = isObject(properties) ? Object.keys(properties) : [];
    const required = arrayOrEmpty(schema.required).filter((name) => typeof name === 'string');
    const least = Math.min(numberOr(schema.minProperties, 0), MAX_PROPERTIES);
    const most = Math.max(required.length, numberOr(schema.maxProperties, Number.POSITIVE_INFINITY));
    const optional = depth > MAX_OPTIONAL_DEPTH ? [] : declared.filter((name) => !required.includes(name));
    const names = [...required, ...optional].slice(0, most);
    const spare = [...declared, ...Array.from({ length: least }, (_, nth) => `extra${nth + 1}`)];
    names.push(...spare.filter((name) => !names.includes(name)).slice(0, Math.max(0, least - names.length)));
    const order = [
      ...declared.filter((name) => names.includes(name)),
      ...names.filter((name) => !declared.includes(name)),
    ];
    const entries = order.map((name): [string, Json] => {
      const member = ownProperty(properties, name) ?? schema.additionalProperties;
      return [name, this.sample(member, { label: name, index, depth: depth + 1 })];
    });
    return Object.fromEntries(entries);
  }

  #sampleArray(schema: SchemaObject, { label, depth }: SamplePosition): Json {
    const first = arrayOrEmpty(schema.prefixItems);
    const least = numberOr(schema.minItems, 0);
    const usual =
      depth > MAX_OPTIONAL_DEPTH || schema.items === false ? first.length : first.length + DEFAULT_ARRAY_LENGTH;
    const length = Math.max(least, Math.min(usual, numberOr(schema.maxItems, usual)));
    const place = { label: label.replace(/([^s])s$/, '$1'), depth: depth + 1 };
    const items: Json[] = [];
    const seen = new Set<string>();
    // A list of different things may need more tries than it has places.
    const unique = schema.uniqueItems === true;
    const tries = unique ? length * 4 : length;
    for (let nth = 0; nth < tries && items.length < length && this.#valueCount <= MAX_VALUES; nth++) {
      const item = this.sample(items.length < first.length ? first[items.length] : schema.items, {
        ...place,
        index: nth,
      });
      const face = unique ? JSON.stringify(item) : '';
      if (unique && seen.has(face)) continue;
      seen.add(face);
      items.push(item);
    }
    return items;
  }
}
