// Immediate changes of one target: its fields, and a manual override of its health; renders nothing.
import { useChange } from "../../api/changes.tsx";
import type { ApiResponse } from "../../api/connection.ts";
import { useConnection } from "../../api/connection-context.ts";
import type { Schemas } from "../../api/resources.ts";
import { addressOf } from "./target-weight.ts";

type Target = Schemas["Target"];

export interface HealthOverride {
  readonly state: "healthy" | "unhealthy" | "auto";
  /** Seconds; null: until it is removed. */
  readonly ttl: number | null;
}

export interface TargetChange {
  patch(target: Target, fields: Partial<Pick<Target, "weight" | "enabled">>): void;
  /** Not part of the configuration, so it creates no revision. */
  override(target: Target, override: HealthOverride): void;
}

interface Variables {
  readonly target: Target;
  readonly text: string;
  readonly send: () => Promise<ApiResponse<Target>>;
}

export function useTargetChange(serviceId: string): TargetChange {
  const connection = useConnection();
  const { mutate } = useChange<Target, Variables>({
    send: ({ send }) => send(),
    touches: ["targets", `services/${serviceId}/health`],
    canUndo: true,
    done: (_, { target, text }) => `Target ${addressOf(target)} ${text}`,
  });
  return {
    patch(target, fields) {
      const send = () =>
        connection.send<Target>(`/targets/${target.id}`, { method: "PATCH", body: fields });
      mutate({ target, send, text: textOf(fields) });
    },
    override(target, { state, ttl }) {
      const body = state === "auto" ? { state } : { state, ttl };
      const send = () =>
        connection.send<Target>(`/targets/${target.id}/health`, { method: "PUT", body });
      const text = state === "auto" ? "follows health checks again" : `is set to ${state}`;
      mutate({ target, send, text });
    },
  };
}

function textOf({ weight, enabled }: Partial<Pick<Target, "weight" | "enabled">>): string {
  if (weight === 0) return "gets no new requests";
  if (weight !== undefined) return `has weight ${weight}`;
  return enabled === true ? "enabled" : "disabled";
}
