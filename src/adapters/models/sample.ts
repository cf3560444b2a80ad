/**
 * A value that fits a JSON Schema, made of the words of a prompt: the same schema and prompt give the same value.
 * Recursive schemas end: deep down only what is required is made, and a value has a bounded number of parts.
 */
import { isObject, ownProperty } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import { formatted, numberOr, numberWithin, textWithin, Words } from './material.js';
import { type Fields, listOf, SchemaReader, typeOf } from './schema.js';

/** Down to here everything is made that a schema offers. */
const SHALLOW = 4;
const USUAL = 3;
const MAX_DEPTH = 64;
const MAX_PARTS = 20_000;
const MAX_NAMES = 1000;

/** Where a value stands: what it is called, and the how-manieth of its kind it is. */
interface Place {
  readonly label: string;
  readonly nth: number;
  readonly depth: number;
}

/** A value for the schema, in the words of the prompt. */
export function sample(schema: unknown, prompt: string): Json {
  return new Sampler(schema, prompt).value(schema, { label: 'answer', nth: 0, depth: 0 });
}

class Sampler {
  readonly #reader: SchemaReader;
  readonly #words: Words;
  #parts = 0;

  constructor(root: unknown, prompt: string) {
    this.#reader = new SchemaReader(root);
    this.#words = new Words(prompt);
  }

  value(schema: unknown, place: Place): Json {
    if (++this.#parts > MAX_PARTS || place.depth > MAX_DEPTH) return null;
    const settled = this.#reader.settle(schema, place.depth > SHALLOW);
    if (Object.hasOwn(settled, 'const')) return settled.const as Json;
    const choices = listOf(settled.enum);
    if (choices.length > 0) return choices[place.nth % choices.length] as Json;
    switch (typeOf(settled)) {
      case 'object':
        return this.#object(settled, place);
      case 'array':
        return this.#array(settled, place);
      case 'number':
        return numberWithin(settled, this.#words.count + place.nth, false);
      case 'integer':
        return numberWithin(settled, this.#words.count + place.nth, true);
      case 'boolean':
        return place.nth % 2 === 0;
      case 'null':
        return null;
      default:
        return this.#string(settled, place);
    }
  }

  #string(schema: Fields, { label, nth }: Place): string {
    const given = [...listOf(schema.examples), schema.default].filter((value) => typeof value === 'string');
    // A pattern cannot be followed in general; an example of the author's does.
    if (typeof schema.pattern === 'string' && given.length > 0) return String(given[nth % given.length]);
    const format = formatted(schema.format, nth);
    return format ?? textWithin(schema, this.#words.phrase(label, nth));
  }

  #object(schema: Fields, { depth, nth }: Place): Json {
    const properties = ownProperty(schema, 'properties');
    const declared = isObject(properties) ? Object.keys(properties) : [];
    const required = listOf(schema.required).filter((name) => typeof name === 'string');
    const least = Math.min(numberOr(schema.minProperties, 0), MAX_NAMES);
    const most = Math.max(required.length, numberOr(schema.maxProperties, Number.POSITIVE_INFINITY));
    const optional = depth > SHALLOW ? [] : declared.filter((name) => !required.includes(name));
    const names = [...required, ...optional].slice(0, most);
    const spare = [...declared, ...Array.from({ length: least }, (_, nth) => `extra${nth + 1}`)];
    names.push(...spare.filter((name) => !names.includes(name)).slice(0, Math.max(0, least - names.length)));
    const order = [
      ...declared.filter((name) => names.includes(name)),
      ...names.filter((name) => !declared.includes(name)),
    ];
    const entries = order.map((name): [string, Json] => {
      const member = ownProperty(properties, name) ?? schema.additionalProperties;
      return [name, this.value(member, { label: name, nth, depth: depth + 1 })];
    });
    return Object.fromEntries(entries);
  }

  #array(schema: Fields, { label, depth }: Place): Json {
    const first = listOf(schema.prefixItems);
    const least = numberOr(schema.minItems, 0);
    const usual = depth > SHALLOW || schema.items === false ? first.length : first.length + USUAL;
    const length = Math.max(least, Math.min(usual, numberOr(schema.maxItems, usual)));
    const place = { label: label.replace(/([^s])s$/, '$1'), depth: depth + 1 };
    const items: Json[] = [];
    const seen = new Set<string>();
    // A list of different things may need more tries than it has places.
    const unique = schema.uniqueItems === true;
    const tries = unique ? length * 4 : length;
    for (let nth = 0; nth < tries && items.length < length && this.#parts <= MAX_PARTS; nth++) {
      const item = this.value(items.length < first.length ? first[items.length] : schema.items, { ...place, nth });
      const face = unique ? JSON.stringify(item) : '';
      if (unique && seen.has(face)) continue;
      seen.add(face);
      items.push(item);
    }
    return items;
  }
}
