import { strictEqual } from 'node:assert';
import { test } from 'node:test';
import { median } from './math.mjs';

test('the middle one of three', () => strictEqual(median([1, 3, 2]), 2));
test('the mean of the two in the middle', () => strictEqual(median([4, 1, 3, 2]), 2.5));
test('numbers of different length', () => strictEqual(median([9, 10, 11]), 10));
