/** `rondo/signals`: receives signed signals for hosted loops over HTTP, and signs them for senders. */
export {
  type DeliveryToSign,
  type SignedDeliveryHeaders,
  signDelivery,
} from '../../host/hosted/verify-signal.js';
export { nodeListener } from '../http/node.js';
export { type SignalHandler, type SignalHandlerOptions, type SignalTarget, signalHandler } from './handler.js';
export type { SecretLookup, SecretReference } from './signal-secrets.js';
