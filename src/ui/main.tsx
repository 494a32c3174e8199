// The entry point of the web UI: theme, connection, cache, router; knows no page by name.
import "@mantine/core/styles.css";
import "@mantine/notifications/styles.css";
import "./ui.css";
import "./changes.css";
import { MantineProvider } from "@mantine/core";
import { ModalsProvider } from "@mantine/modals";
import { Notifications } from "@mantine/notifications";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { Connection } from "./api/connection.ts";
import { ConnectionContext } from "./api/connection-context.ts";
import { ApiError } from "./api/error.ts";
import { createGuardedLocation, LeaveGuard, LeaveGuardContext } from "./parts/leave-guard.tsx";
import { Entrance } from "./shell/entrance.tsx";
import { ErrorBoundary } from "./shell/error-boundary.tsx";
import { SignInDialog } from "./shell/sign-in-dialog.tsx";
import { cssVariables, theme } from "./theme.ts";

const connection = new Connection();
const guard = new LeaveGuard();
const useLocation = createGuardedLocation(guard);
const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // Events invalidate queries; after a reconnect the event `reset` does.
      staleTime: 30_000,
      refetchOnWindowFocus: false,
      // A rejected request would be rejected again.
      retry: (count, error) => count < 2 && error instanceof ApiError && error.status === 0,
    },
  },
});

const root = document.getElementById("root");
if (root !== null)
  createRoot(root).render(
    <StrictMode>
      <MantineProvider theme={theme} defaultColorScheme="auto" cssVariablesResolver={cssVariables}>
        <QueryClientProvider client={queries}>
          <ConnectionContext value={connection}>
            <LeaveGuardContext value={guard}>
              <Router hook={useLocation}>
                <ModalsProvider>
                  <Notifications position="bottom-right" />
                  <ErrorBoundary>
                    <Entrance />
                  </ErrorBoundary>
                  <SignInDialog />
                </ModalsProvider>
              </Router>
            </LeaveGuardContext>
          </ConnectionContext>
        </QueryClientProvider>
      </MantineProvider>
    </StrictMode>,
  );
