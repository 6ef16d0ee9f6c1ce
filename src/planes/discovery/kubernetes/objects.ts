/** The parts of Kubernetes' objects that are read here; everything else in them is left alone. */

export interface ApiObject {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly deletionTimestamp?: string;
  };
}

export interface ObjectList<T> {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  /** Servers written in Go say null where there are none. */
  readonly items: readonly T[] | null;
}

export interface ApiStatus {
  readonly code: number;
  readonly message: string;
}

export type WatchEvent<T extends ApiObject> =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: T }
  | { readonly type: "BOOKMARK"; readonly object: { readonly metadata: { readonly resourceVersion: string } } }
  | { readonly type: "ERROR"; readonly object: ApiStatus };

/** `core/v1` Pod. */
export interface Pod extends ApiObject {
  readonly spec?: {
    readonly containers?: readonly {
      readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[];
    }[];
  };
  readonly status?: {
    readonly phase?: string;
    readonly podIP?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

/** `discovery.k8s.io/v1` EndpointSlice. */
export interface EndpointSlice extends ApiObject {
  readonly addressType: string;
  readonly endpoints?:
    | readonly {
        readonly addresses: readonly string[];
        /** What is absent is unknown, and counts as ready. */
        readonly conditions?: { readonly ready?: boolean; readonly terminating?: boolean };
        readonly targetRef?: { readonly kind?: string; readonly name?: string; readonly uid?: string };
      }[]
    | null;
  readonly ports?: readonly { readonly name?: string; readonly port?: number }[] | null;
}
