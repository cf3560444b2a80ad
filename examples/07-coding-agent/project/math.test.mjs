import { strictEqual } from 'node:assert';
import { test } from 'node:test';
import { median } from './math.mjs';

test('the median of three numbers is the middle one', () => strictEqual(median([1, 3, 2]), 2));
test('the median of four numbers is the mean of the middle two', () => strictEqual(median([4, 1, 3, 2]), 2.5));
test('numbers of different length', () => strictEqual(median([9, 10, 11]), 10));
