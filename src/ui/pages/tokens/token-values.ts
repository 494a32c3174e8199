// The fields of the form of a token, converted from and to the API's objects; renders nothing.
import type { Read, Write } from "../../api/resources.ts";

export interface TokenValues extends Pick<
  Read<"tokens">,
  "name" | "role" | "enabled" | "allowed_cidrs" | "description" | "tags"
> {
  /** RFC 3339; null: never. */
  readonly expires_at: string | null;
}

export const toValues = (token: Partial<Read<"tokens">>): TokenValues => ({
  name: token.name ?? "",
  role: token.role ?? "viewer",
  expires_at: token.expires_at ?? null,
  allowed_cidrs: token.allowed_cidrs ?? [],
  enabled: token.enabled ?? true,
  description: token.description ?? "",
  tags: token.tags ?? [],
});

export const toBody = (values: TokenValues): Write<"tokens"> => values;

export const rules = {
  name: (value: string) => (value.trim() === "" ? "Name is required" : null),
  expires_at: (value: string | null) =>
    value !== null && Date.parse(value) <= Date.now() ? "Must be in the future" : null,
};

/** Whether it has expired. */
export const isExpired = ({ expires_at: at }: Pick<Read<"tokens">, "expires_at">): boolean =>
  at !== null && Date.parse(at) <= Date.now();
