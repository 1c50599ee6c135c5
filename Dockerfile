# The image of a release is built without a container engine (docs/releases.md). This one is for your own builds:
#
#   docker build --build-arg VERSION=v0.1.0 --tag holdfast .
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH VERSION="" REVISION=""
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X github.com/holdfast-go/holdfast/internal/cli.version=$VERSION -X github.com/holdfast-go/holdfast/internal/cli.revision=$REVISION" \
    -o /root/image/usr/bin/holdfast ./cmd/holdfast
RUN mkdir -m 0700 /root/image/data && chown 65532:65532 /root/image/data && mkdir -m 1777 /root/image/tmp

FROM scratch
COPY --from=build /root/image/ /
ENV PATH=/usr/bin HOLDFAST_DB=sqlite:/data/holdfast.db HOLDFAST_LISTEN=0.0.0.0:7070
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 7070
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/holdfast"]
CMD ["serve"]
