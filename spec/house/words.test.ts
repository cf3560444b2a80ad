import { expect } from 'vitest';
import { verifies } from '../verifies.js';
import { readText, textFiles } from './tree.js';
import { wordFaults } from './words.js';

const folders = ['src', 'spec', 'bench', 'examples', 'scripts', 'docs'];
const documents = ['README.md', 'ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md'];
const faultsOf = (text: string): readonly string[] => wordFaults({ file: 'src/a.ts', text });

verifies('house.words', 'every file uses the words of the glossary', () => {
  const files = [...textFiles(folders), ...documents.map((file) => ({ file, text: readText(file) }))];
  expect(files.length).toBeGreaterThan(500);
  // The glossary lists the words that it replaces.
  expect(files.filter(({ file }) => file !== 'docs/glossary.md').flatMap(wordFaults)).toEqual([]);
});

verifies('house.words', 'a forbidden word is found in any case and inside of an identifier', () => {
  expect(faultsOf(`// 20 unless ${'told'}\nconst a = 1;`)).toEqual([
    `src/a.ts:1 says 'unless ${'told'}'; use a term of docs/glossary.md`,
  ]);
  expect(faultsOf(`\n${'Some'}${'body'} and who${'ever'}`)).toHaveLength(2);
  expect(faultsOf(`const toolErr${'and'} = new Occa${'sion'}();`)).toHaveLength(2);
});

verifies('house.words', 'a similar word is accepted', () => {
  expect(faultsOf('An occasional retry; it happens occasionally. It needs a sandbox.')).toEqual([]);
});
