import { Host } from '../../src/host/host.js';
import type { Store } from '../../src/journal/store.js';
import type { ToolFunction } from '../../src/loops/implementation.js';
import type { Backend, ModelRequest } from '../../src/loops/model.js';
import type { LoopDef } from '../../src/protocol/loop.js';
import type { TraceEvent } from '../../src/protocol/trace.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
export interface Staging {
    readonly store?: Store;
    readonly tools?: {
        readonly [name: string]: ToolFunction;
    };
    readonly backends?: readonly Backend[];
    readonly clock?: ManualClock;
    readonly maxDepth?: number;
    readonly seed?: number;
}
/** A host with these definitions registered. */
export declare function hostOf(definitions: readonly unknown[], staging?: Staging): Host;
type Part = Partial<LoopDef> & {
    readonly id: string;
};
export declare const tool: (id: string, implementation?: string, more?: Partial<LoopDef>) => Part;
export declare const prompt: (id: string, template: string, more?: Partial<LoopDef>) => Part;
export declare const composite: (id: string, steps: readonly unknown[], more?: object) => object;
/** A backend that answers these texts, one after another, and keeps what it was asked. */
export declare function answering(texts: readonly string[], id?: string): Backend & {
    readonly asked: ModelRequest[];
};
/** The types of the events of one call, in order. */
export declare function typesOf(trace: readonly TraceEvent[], callId: string): readonly string[];
export {};
