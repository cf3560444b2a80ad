import type { LanguageModelV3, LanguageModelV3CallOptions, LanguageModelV3StreamPart } from '@ai-sdk/provider';
import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import type { Model, ModelCallOptions, ModelStreamPart } from '../../protocol/model.js';

type Fits<From, To> = [From] extends [To] ? true : false;

// The compiler is the judge: a line that does not hold is a type error, before any test runs.
const holds: readonly true[] = [
  true satisfies Fits<LanguageModelV3, Model>,
  true satisfies Fits<Model, LanguageModelV3>,
  true satisfies Fits<LanguageModelV3StreamPart, ModelStreamPart>,
  true satisfies Fits<ModelStreamPart, LanguageModelV3StreamPart>,
  true satisfies Fits<ModelCallOptions, LanguageModelV3CallOptions>,
];

verifies('model.port', 'a model of the AI SDK cannot be used here, or one of ours not there', () => {
  expect(holds).toEqual([true, true, true, true, true]);
});
