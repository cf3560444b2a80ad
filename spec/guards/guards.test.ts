// Each guard, and its broken twin: the check holds on the library as it is, and fails when the guard is taken out.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { guards } from './guards.js';
import { type Library, Workshop } from './library.js';

let workshop: Workshop;
let whole: Library;

beforeAll(async () => {
  workshop = new Workshop();
  whole = await workshop.load();
});
afterAll(() => workshop.close());

/** A check that hangs has noticed too: the broken library never came to an end. */
function within<T>(ms: number, work: Promise<T>): Promise<T> {
  return Promise.race([work, new Promise<never>((_, reject) => setTimeout(reject, ms, new Error('no end')))]);
}

for (const { disaster, check, ...broken } of guards) {
  test(`the guard against "${disaster}" holds, and is missed when broken: ${broken.from.trim().slice(0, 60)}`, async () => {
    await within(20_000, check(whole));
    const twin = await workshop.load(broken);
    await expect(within(5_000, check(twin))).rejects.toThrow();
  });
}
