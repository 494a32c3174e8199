// Queries: lists, objects with their ETag, the status and the current user; changes nothing.
import {
  keepPreviousData,
  useQuery,
  useQueryClient,
  type UseQueryResult,
} from "@tanstack/react-query";
import { createContext, useContext } from "react";
import type { SendOptions } from "./connection.ts";
import { useConnection } from "./connection-context.ts";
import { useLostAt } from "./reachability.ts";
import type { Read, ResourceKey, Role, Schemas } from "./resources.ts";

/** A read value with its ETag for a later change. */
export interface Versioned<T> {
  readonly value: T;
  readonly etag: string | null;
}

/** Query keys: `[path, …]`, so that all queries below a path can be invalidated together. */
export const queryKeys = {
  list: (resource: ResourceKey, filters: SendOptions["query"] = {}) =>
    [resource, "list", filters] as const,
  one: (resource: ResourceKey, id: string) => [resource, "one", id] as const,
  of: (path: string, query: SendOptions["query"] = {}) => [path, query] as const,
  status: ["admin/status"] as const,
  me: ["auth/me"] as const,
};

/** All objects of a resource; the API does not paginate. `filters` are query parameters such as `service_id`. */
export function useResourceList<K extends ResourceKey>(
  resource: K,
  filters: SendOptions["query"] = {},
): UseQueryResult<readonly Read<K>[]> {
  const connection = useConnection();
  return useQuery({
    queryKey: queryKeys.list(resource, filters),
    queryFn: async ({ signal }) =>
      (await connection.send<readonly Read<K>[]>(`/${resource}`, { query: filters, signal })).value,
  });
}

/** One object with its ETag. A null id disables the query, as for a form that creates. */
export function useResource<K extends ResourceKey>(
  resource: K,
  id: string | null,
): UseQueryResult<Versioned<Read<K>>> {
  const connection = useConnection();
  return useQuery({
    queryKey: queryKeys.one(resource, id ?? ""),
    enabled: id !== null,
    queryFn: async ({ signal }): Promise<Versioned<Read<K>>> => {
      const path = `/${resource}/${encodeURIComponent(id ?? "")}`;
      const { value, etag } = await connection.send<Read<K>>(path, { signal });
      return { value, etag };
    },
  });
}

export interface ReadOptions {
  readonly query?: SendOptions["query"];
  /** Refetch interval in milliseconds; default: none, events trigger it. */
  readonly everyMs?: number;
  readonly enabled?: boolean;
  /** Whether a changed query shows the previous data while loading. Default: false. */
  readonly keepsPrevious?: boolean;
}

/** Any other GET: `useRead<Schemas["Stats"]>("stats", { query: { range: "1h" } })`. */
export function useRead<T>(path: string, options: ReadOptions = {}): UseQueryResult<Versioned<T>> {
  const { query = {}, everyMs, enabled = true, keepsPrevious = false } = options;
  const connection = useConnection();
  return useQuery({
    queryKey: queryKeys.of(path, query),
    enabled,
    ...(everyMs === undefined ? {} : { refetchInterval: everyMs }),
    ...(keepsPrevious ? { placeholderData: keepPreviousData } : {}),
    queryFn: async ({ signal }): Promise<Versioned<T>> => {
      const { value, etag } = await connection.send<T>(`/${path}`, { query, signal });
      return { value, etag };
    },
  });
}

/** While the gateway does not respond. */
const LOST_MS = 3000;

/** Version, workers, revision and warnings of the gateway; requires no sign-in. */
export function useStatus(): UseQueryResult<Schemas["Status"]> {
  const connection = useConnection();
  const isLost = useLostAt() !== null;
  return useQuery({
    queryKey: queryKeys.status,
    refetchInterval: isLost ? LOST_MS : 30_000,
    queryFn: async ({ signal }) =>
      (await connection.send<Schemas["Status"]>("/admin/status", { signal })).value,
  });
}

/** The current user; null: sign-in required. */
export function useMe(): UseQueryResult<Schemas["Me"] | null> {
  const connection = useConnection();
  const client = useQueryClient();
  return useQuery({
    queryKey: queryKeys.me,
    staleTime: 60_000,
    queryFn: async ({ signal }): Promise<Schemas["Me"] | null> => {
      // After a session ends, the dialog opens over the page, whose unsaved input must survive.
      const waitsForSignIn = (client.getQueryData(queryKeys.me) ?? null) !== null;
      try {
        return (await connection.send<Schemas["Me"]>("/auth/me", { signal, waitsForSignIn })).value;
      } catch (error) {
        if (isUnauthorized(error)) return null;
        throw error;
      }
    },
  });
}

const isUnauthorized = (error: unknown): boolean =>
  typeof error === "object" && error !== null && "status" in error && error.status === 401;

const order: readonly Role[] = ["viewer", "editor", "admin"];

/** Whether `role` may do what needs `needed`. */
export const includesRole = (role: Role, needed: Role): boolean =>
  order.indexOf(role) >= order.indexOf(needed);

/** Set by the shell, because hundreds of buttons read it. */
export const RoleContext = createContext<Role>("viewer");

/** Whether a file manages the configuration, so that the UI is read-only. */
export const ReadOnlyContext = createContext(false);

/** Whether the current user may change configuration that needs this role. */
export const useMayChange = (needs: Role): boolean => {
  const isReadOnly = useContext(ReadOnlyContext);
  return includesRole(useRole(), needs) && !isReadOnly;
};

/** The role of the current user. */
export const useRole = (): Role => useContext(RoleContext);
