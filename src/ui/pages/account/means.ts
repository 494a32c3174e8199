// The sign-in methods of a user, as the API returns them; draws nothing.
import type { Schemas } from "../../api/resources.ts";

export type Means = Schemas["SignInMeans"];

export interface MeansProps {
  readonly userId: string;
  readonly means: Means;
}

/** Below /api/v1; also what to read anew after a change. */
export const meansPath = (userId: string): string => `users/${userId}/totp`;
