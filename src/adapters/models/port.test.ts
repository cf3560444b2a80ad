import type { LanguageModelV3, LanguageModelV3CallOptions, LanguageModelV3StreamPart } from '@ai-sdk/provider';
import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import type { Model, ModelCallOptions, ModelStreamPart } from '../../protocol/model.js';

type Fits<From, To> = [From] extends [To] ? true : false;

// These are compile-time assertions: a line that does not hold is a type error.
const assertions: readonly true[] = [
  true satisfies Fits<LanguageModelV3, Model>,
  true satisfies Fits<Model, LanguageModelV3>,
  true satisfies Fits<LanguageModelV3StreamPart, ModelStreamPart>,
  true satisfies Fits<ModelStreamPart, LanguageModelV3StreamPart>,
  true satisfies Fits<ModelCallOptions, LanguageModelV3CallOptions>,
];

verifies('model.port', 'models of the AI SDK and models of this runtime are interchangeable', () => {
  expect(assertions).toEqual([true, true, true, true, true]);
});
