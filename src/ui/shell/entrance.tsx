// Selects what to render: first run, sign-in, or the pages; renders none of them itself.
import { Center, Loader } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { useLocation } from "wouter";
import { LiveProvider } from "../api/live.tsx";
import { queryKeys, ReadOnlyContext, RoleContext, useMe, useStatus } from "../api/queries.ts";
import { ErrorPanel } from "../parts/error-panel.tsx";
import { pagePath } from "../page-path.ts";
import { skipFirstRun, useIsFirstRunSkipped } from "./first-run.ts";
import { Shell } from "./shell.tsx";
import { SIGNED_IN_PATH } from "./sso-button.tsx";

const FirstRun = lazy(() => import("../pages/sign-in/first-run-page.tsx"));
const SignedIn = lazy(() => import("../pages/sign-in/signed-in-page.tsx"));
const SignIn = lazy(() => import("../pages/sign-in/sign-in-page.tsx"));

export function Entrance() {
  const status = useStatus();
  const me = useMe();
  const client = useQueryClient();
  const isSkipped = useIsFirstRunSkipped();
  const [path, navigate] = useLocation();
  if (status.isPending || me.isPending)
    return (
      <Center h="100dvh">
        <Loader aria-label="Loading" />
      </Center>
    );
  const failure = status.error ?? me.error;
  if (failure !== null && me.data === undefined)
    return (
      <Center h="100dvh" p="md">
        <ErrorPanel error={failure} onRetry={() => client.invalidateQueries()} />
      </Center>
    );
  const refresh = () => client.invalidateQueries();
  const isReadOnly = status.data?.read_only ?? false;
  if (status.data?.setup_required === true && !isReadOnly && !isSkipped)
    return (
      <Suspense>
        <FirstRun
          onDone={() => {
            navigate(pagePath("applications", "new"));
            void refresh();
          }}
          onSkip={skipFirstRun}
        />
      </Suspense>
    );
  if (me.data === null || me.data === undefined)
    return (
      <Suspense>
        <SignIn
          onSignedIn={(next) => {
            client.setQueryData(queryKeys.me, next);
            void refresh();
          }}
        />
      </Suspense>
    );
  if (path === SIGNED_IN_PATH)
    return (
      <Suspense>
        <SignedIn />
      </Suspense>
    );
  return (
    <LiveProvider key={me.data.user?.id ?? me.data.method}>
      <RoleContext value={me.data.role}>
        <ReadOnlyContext value={isReadOnly}>
          <Shell me={me.data} />
        </ReadOnlyContext>
      </RoleContext>
    </LiveProvider>
  );
}
