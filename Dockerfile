# The command line in an image of its own: one static program, certificates of authorities, and two directories; no shell, no root.
#
#   docker build -t rebalancer .
#   docker run --rm -v state:/var/lib/rebalancer rebalancer groups
#
# `consume` runs a command for each message: one that is not in here. Take the program into the image of your command instead:
#
#   COPY --from=rebalancer /usr/bin/rebalancer /usr/bin/rebalancer
FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
WORKDIR /src
# Dependencies change less often than the program.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS=linux
ARG TARGETARCH=amd64
# The version is that of the checkout, whose owner is another user than that of the build.
RUN git config --global --add safe.directory /src \
 && CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags "-s -w" -o /out/rebalancer ./cmd/rebalancer \
 && mkdir -p /out/state /out/tmp

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build --chown=65532:65532 /out/state /var/lib/rebalancer
COPY --from=build --chown=65532:65532 /out/tmp /tmp
COPY --from=build /out/rebalancer /usr/bin/rebalancer
COPY LICENSE /usr/share/doc/rebalancer/LICENSE
# Without --store the metadata of a group goes to $XDG_STATE_HOME/rebalancer: mount a volume there, or name a store.
ENV XDG_STATE_HOME=/var/lib
USER 65532:65532
ENTRYPOINT ["/usr/bin/rebalancer"]
CMD ["help"]
