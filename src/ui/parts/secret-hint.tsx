// A hint beside stored secrets for roles below admin; shows no secret.
import { includesRole, useRole } from "../api/queries.ts";
import { HelpText } from "./page-layout.tsx";

/** Not for admins, who may change a destination without entering its secret again. */
export function SecretHint() {
  if (includesRole(useRole(), "admin")) return null;
  return (
    <HelpText>
      Empty secret fields keep the stored secrets. To change their destination, enter them again.
    </HelpText>
  );
}
