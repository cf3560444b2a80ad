/** Keys for receipts and checkpoints, from a directory or from the environment. */
export { KeyDirectory } from './key-directory.js';
export { type RunxSigner, signerFromEnv } from './signer-from-env.js';
