import assert from 'node:assert/strict';
import { test } from 'node:test';
import { median } from './math.mjs';

test('the middle one of three', () => assert.equal(median([1, 3, 2]), 2));
test('the mean of the two in the middle', () => assert.equal(median([4, 1, 3, 2]), 2.5));
test('numbers of different length', () => assert.equal(median([9, 10, 11]), 10));
