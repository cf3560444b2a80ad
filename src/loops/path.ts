// Stand-in until the owner of this file writes it.
import { JSONPathEnvironment } from 'json-p3';
import type { Json } from '../protocol/json.js';

export interface Path {
  readonly text: string;
  readonly singular: boolean;
  find(root: Json): readonly Json[];
  one(root: Json): Json | undefined;
}

const env = new JSONPathEnvironment();
export function compilePath(text: string, _where: string): Path {
  const query = env.compile(text);
  const find = (root: Json): readonly Json[] => query.query(root as never).values() as Json[];
  return { text, singular: query.singularQuery(), find, one: (root) => find(root)[0] };
}
