// The frame around every page: header, navigation, banner, keyboard; the table of pages selects the page.
import {
  Alert,
  Anchor,
  AppShell,
  Badge,
  Burger,
  Group,
  ScrollArea,
  Text,
  Tooltip,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type ReactNode, Suspense, useContext, useEffect } from "react";
import { Link, useLocation } from "wouter";
import { capitalised } from "../api/changes.tsx";
import { useLive } from "../api/live.tsx";
import { ReadOnlyContext, useStatus } from "../api/queries.ts";
import { useLostAt } from "../api/reachability.ts";
import type { Schemas } from "../api/resources.ts";
import { pagePath } from "../page-path.ts";
import { ProductMark } from "../parts/product-mark.tsx";
import { PageSkeleton } from "../parts/skeletons.tsx";
import { ErrorBoundary } from "./error-boundary.tsx";
import { beginFirstRun } from "./first-run.ts";
import { FleetBanner } from "./fleet-banner.tsx";
import { LostBanner } from "./lost-banner.tsx";
import { KeyboardHelp } from "./keyboard.tsx";
import { Navigation } from "./navigation.tsx";
import { Palette } from "./palette.tsx";
import { PageSwitch } from "./page-switch.tsx";
import { UserMenu } from "./user-menu.tsx";

export function Shell({ me }: { readonly me: Schemas["Me"] }) {
  const [isOpen, { toggle, close }] = useDisclosure(false);
  const [path] = useLocation();
  const isLost = useLostAt() !== null;
  // Navigation closes the open menu.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the path is what it depends on
  useEffect(close, [path]);
  return (
    <AppShell
      header={{ height: 54 }}
      navbar={{ width: 232, breakpoint: "md", collapsed: { mobile: !isOpen } }}
      padding={{ base: "sm", sm: "lg" }}
    >
      <a className="skip-link" href="#content">
        Skip to the content
      </a>
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger
              opened={isOpen}
              onClick={toggle}
              hiddenFrom="md"
              size="sm"
              aria-label={isOpen ? "Close the menu" : "Open the menu"}
            />
            <Link
              href="/"

              style={{ color: "inherit", textDecoration: "none" }}
            >
              <Group gap={8} wrap="nowrap">
                <ProductMark size={22} />
                <Text fw={650} className="words-on-wide">
                  Sluice
                </Text>
              </Group>
            </Link>
          </Group>
          <Group gap="xs" wrap="nowrap">
            <Palette />
            <ServiceState />
            <UserMenu me={me} />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar component="nav" aria-label="Pages">
        <AppShell.Section grow component={ScrollArea} p="xs">
          <Navigation role={me.role} />
        </AppShell.Section>
      </AppShell.Navbar>
      <AppShell.Main
        id="content"
        tabIndex={-1}
        bg="var(--sluice-canvas)"
        data-stale={isLost || undefined}
      >
        <LostBanner />
        <Banner me={me} />
        <PageFrame key={path}>
          <PageSwitch path={path} role={me.role} />
        </PageFrame>
      </AppShell.Main>
      <KeyboardHelp />
    </AppShell>
  );
}

function PageFrame({ children }: { readonly children: ReactNode }) {
  return (
    <ErrorBoundary>
      <Suspense fallback={<PageSkeleton />}>{children}</Suspense>
    </ErrorBoundary>
  );
}

/** The current revision, and whether all workers serve it. */
function ServiceState() {
  const { data } = useStatus();
  const isLive = useLive();
  if (data === undefined) return null;
  const { revision, workers, workers_ready: ready, fleet } = data;
  const isWhole = ready === workers;
  const label = isLive
    ? `Revision ${revision} is live on ${ready} of ${workers} workers${fleet === null ? "" : ` of node ${fleet.node}`}. This page updates automatically.`
    : "This page is not connected to the gateway. Reconnecting.";
  return (
    <Tooltip label={label} multiline maw={260} events={{ hover: true, focus: true, touch: true }}>
      <Badge
        component="button"
        type="button"
        variant="light"
        color={isLive ? (isWhole ? "teal" : "yellow") : "gray"}
        tt="none"
        size="lg"
        style={{ cursor: "default", flexShrink: 0 }}
      >
        {isLive ? `Revision ${revision} · ${ready}/${workers}` : "Offline"}
      </Badge>
    </Tooltip>
  );
}

function FirstRunButton() {
  return (
    <Anchor component="button" type="button" size="sm" onClick={beginFirstRun}>
      Create the first administrator
    </Anchor>
  );
}

/** Notices for every page. */
function Banner({ me }: { readonly me: Schemas["Me"] }) {
  const isReadOnly = useContext(ReadOnlyContext);
  const isOpen = me.authentication === "disabled";
  return (
    <>
      {isOpen && (
        <Alert color="yellow" mb="md" title="No users yet">
          Anyone who can reach this address can {isReadOnly ? "read" : "change"} everything.{" "}
          {isReadOnly ? (
            "Add a user with the role admin to the configuration file."
          ) : (
            <FirstRunButton />
          )}
        </Alert>
      )}
      <FleetBanner />
      <AccessBanner me={me} />
      {isReadOnly && <KeptInFile />}
      {me.role === "viewer" && !isReadOnly && (
        <Alert color="gray" mb="md" py="xs">
          Read-only: your role is viewer.
        </Alert>
      )}
    </>
  );
}

/** Warns about an open or closed management network. */
function AccessBanner({ me }: { readonly me: Schemas["Me"] }) {
  const { data } = useStatus();
  const access = data?.management_access;
  if (access === "any")
    return (
      <Alert color="yellow" mb="md" title="Management access is open to every network">
        The management API accepts requests from any network.{" "}
        {me.role === "admin" && (
          <Anchor component={Link} href={pagePath("gateway-settings")} size="sm">
            Set the allowed networks
          </Anchor>
        )}
      </Alert>
    );
  if (access !== "held_back") return null;
  const reason = data?.warnings.find((warning) => warning.includes("listens on loopback only"));
  return (
    <Alert color="yellow" mb="md" title="Management access is limited to this machine">
      {capitalised(reason ?? "the gateway was started with another address, which it may not use")}.
    </Alert>
  );
}

function KeptInFile() {
  return (
    <Alert color="blue" mb="md" py="xs" title="Read-only configuration">
      The gateway was started with a configuration file (<code>serve --config</code>). Edit the
      file: the gateway applies it within a second. If the file is not valid, the log contains the
      error and the current configuration stays live.
    </Alert>
  );
}
