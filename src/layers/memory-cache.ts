/** Kept answers in memory: the one that was not used for the longest time goes first. */
import type { Json } from '../protocol/json.js';
import type { Answer, AnswerCache } from './cache.js';

interface Kept {
  readonly text: string;
  readonly at: number;
  readonly bytes: number;
}

/** A cache of at most so many answers and so many bytes of them; an answer that alone is larger is not kept. */
export function memoryCache(bounds: { readonly entries: number; readonly bytes: number }): AnswerCache {
  // A map keeps its order: the first is the one that was not used for the longest time.
  const answers = new Map<string, Kept>();
  let weight = 0;
  const drop = (key: string): void => {
    weight -= answers.get(key)?.bytes ?? 0;
    answers.delete(key);
  };
  const get = (key: string): Answer | undefined => {
    const kept = answers.get(key);
    if (kept === undefined) return undefined;
    answers.delete(key);
    answers.set(key, kept);
    return { value: JSON.parse(kept.text) as Json, at: kept.at };
  };
  const put = (key: string, { value, at }: Answer): void => {
    // As text it cannot be changed by whoever holds the value, and its size is known.
    const text = JSON.stringify(value);
    const bytes = Buffer.byteLength(text) + key.length;
    drop(key);
    if (bytes > bounds.bytes) return;
    answers.set(key, { text, at, bytes });
    weight += bytes;
    for (const oldest of answers.keys()) {
      if (answers.size <= bounds.entries && weight <= bounds.bytes) return;
      drop(oldest);
    }
  };
  return { get, put };
}
