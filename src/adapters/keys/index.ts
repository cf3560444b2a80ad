/** Keys for receipts and checkpoints, from a directory or from the environment. */
export { CheckpointFile } from './checkpoint-file.js';
export { KeyDirectory, type SignedStore } from './key-directory.js';
export { KeyOrigin } from './key-origin.js';
export { PinnedDirectory } from './pinned-directory.js';
export { type RunxSigner, signerFromEnv } from './signer-from-env.js';
export { StreamLengths } from './stream-lengths.js';
