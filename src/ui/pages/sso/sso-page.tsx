// Single sign-on with OpenID Connect: loads its settings and shows their form; knows no user.
import { Box } from "@mantine/core";
import { useRead } from "../../api/queries.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { PageHead } from "../../parts/page-layout.tsx";
import { FormSkeleton } from "../../parts/skeletons.tsx";
import { SsoForm } from "./sso-form.tsx";
import type { Sso } from "./sso-values.ts";

export default function SsoPage() {
  const sso = useRead<Sso>("sso");
  return (
    <Box maw={920}>
      <PageHead
        title="Single sign-on"
        text="Sign-in with accounts of your identity provider (OpenID Connect). Passwords still work."
      />
      {sso.data !== undefined ? (
        <SsoForm source={sso.data} />
      ) : sso.isPending ? (
        <FormSkeleton />
      ) : (
        <ErrorPanel error={sso.error} onRetry={() => sso.refetch()} />
      )}
    </Box>
  );
}
