// The fields of the form of a user, converted from and to the API's objects; renders nothing.
import type { Read, Write } from "../../api/resources.ts";
import { passwordRule } from "../account/own-password.tsx";

export interface UserValues extends Pick<
  Read<"users">,
  "email" | "name" | "role" | "enabled" | "description" | "tags"
> {
  /** Of a new user; existing users have a separate form. */
  readonly password: string;
}

export const toValues = (user: Partial<Read<"users">>): UserValues => ({
  // A clone has no id and is another user.
  email: user.id === undefined ? "" : (user.email ?? ""),
  name: user.id === undefined ? "" : (user.name ?? ""),
  role: user.role ?? "viewer",
  enabled: user.enabled ?? true,
  description: user.description ?? "",
  tags: user.tags ?? [],
  password: "",
});

export function toBody({ password, ...values }: UserValues): Write<"users"> {
  return password === "" ? values : { ...values, password };
}

/** `needsPassword`: no other sign-in method is available. */
export const rulesFor = (needsPassword: boolean) => ({
  email: (value: string) =>
    /^[^\s@<>"',;]+@[^\s@<>"',;]+$/.test(value) ? null : "Must be an e-mail address",
  name: (value: string) => (value.trim() === "" ? "Name is required" : null),
  password: (value: string) => (value === "" && !needsPassword ? null : passwordRule(value)),
});
